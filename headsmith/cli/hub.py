"""Bundles on the Hugging Face hub."""

from typing import Annotated

import typer

from ..core.printable import printable
from .app import app
from .shared import Bundle


@app.command()
def push(
    bundle: Bundle,
    repo: Annotated[str, typer.Argument(help="USER/REPO on the hub; made where it does not exist.")],
    private: Annotated[bool, typer.Option("--private", help="A repository that is not public.")] = False,
    license: Annotated[
        str | None, typer.Option(help="The hub's name of a licence, such as apache-2.0.", show_default="none stated")
    ] = None,
) -> None:
    """Upload a bundle to the Hugging Face hub; `hf:USER/REPO` then names it wherever a bundle is asked for."""
    from ..export import push as run
    from ..show import console

    console.print(printable(run(bundle, repo, private=private, license=license)), markup=False)
