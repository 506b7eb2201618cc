"""From a bundle to the Hugging Face hub, through its own client."""

import glob
import re
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from ...core.arguments import typed
from ...core.errors import InputError
from ...core.files import read_json, write_json
from ...core.records import to_json
from ...core.version import __version__
from ..provenance import features_origin, portable
from .bundle import CARD, Bundle
from .hub import HUB, hub_errors
from .manifest import MANIFEST
from .manifest_writer import file_record

if TYPE_CHECKING:
    from huggingface_hub import HfApi


@typed
def push(bundle: str | Path | Bundle, repo: str, *, private: bool = False, license: str | None = None) -> str:
    """Upload a bundle to the Hugging Face hub; ``hf:USER/REPO`` then names it wherever a bundle is asked for.

    The card gets the metadata that the hub shows and searches. Of a bundle that the repository holds already, files
    that are not in this one are deleted. No path of this machine is uploaded, whatever an older manifest holds.

    Args:
        bundle: A bundle, or its folder.
        repo: ``USER/REPO``; made where it does not exist.
        private: Only for those who may read the repository; it is an error where that is public already.
        license: The hub's name of a licence, such as ``apache-2.0``; ``None`` states none.

    Returns:
        The address of the repository.

    Raises:
        InputError: Another name, a damaged bundle, a public repository, or the hub cannot be reached or refuses.
    """
    from huggingface_hub import HfApi

    repo = repo.removeprefix(HUB)
    if not re.fullmatch(r"[^/\s]+/[^/\s]+", repo):
        raise InputError(f"{repo}: is no name of a repository, expected USER/REPO")
    bundle = bundle if isinstance(bundle, Bundle) else Bundle.load(bundle)
    for format in bundle.model_files:
        bundle.open(format)  # compares the manifest with what the file says of itself
    api = HfApi(library_name="headsmith", library_version=__version__)
    with tempfile.TemporaryDirectory() as name, hub_errors(f"{HUB}{repo}"):
        _stage(bundle, Path(name), license)
        made = api.create_repo(repo, private=private or None, exist_ok=True)
        if private and not api.model_info(made.repo_id).private:
            raise InputError(
                f"{HUB}{made.repo_id}: is public, but --private was asked for; choose another repository, or make "
                "this one private on the hub"
            )
        api.upload_folder(
            repo_id=made.repo_id,
            folder_path=name,
            delete_patterns=_files_there(api, made.repo_id),
            commit_message=f"headsmith {__version__}",
        )
    return str(made)


def _files_there(api: "HfApi", repo: str) -> list[str]:
    """The files of the bundle that the repository holds, if it holds one."""
    if not api.file_exists(repo, MANIFEST):
        return []
    files = read_json(api.hf_hub_download(repo, MANIFEST)).get("files")
    return [glob.escape(name) for name in files] if isinstance(files, dict) else []


def _stage(bundle: Bundle, folder: Path, license: str | None) -> None:
    """The bundle as it will be on the hub: its card has metadata, which its manifest must know."""
    from huggingface_hub import metadata_load, metadata_save

    for name in bundle.manifest.files:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).symlink_to((bundle.path / name).resolve())
    card = folder / CARD
    card.unlink()
    shutil.copyfile(bundle.path / CARD, card)
    metadata_save(card, (metadata_load(card) or {}) | _card_metadata(bundle, license))
    values = read_json(bundle.path / MANIFEST)  # as they are, so that their hashes stay true
    values |= {key: portable(values[key]) for key in ("backbone", "training")}
    if bundle.manifest.features.source_sha256 is None:
        values["features"] = to_json(features_origin(bundle.manifest.features))
    values["files"][CARD] = to_json(file_record(card))
    write_json(folder / MANIFEST, values)


def _card_metadata(bundle: Bundle, license: str | None) -> dict[str, object]:
    task = {} if bundle.head_only else {"pipeline_tag": "image-classification"}
    return {
        "library_name": "headsmith",
        **task,
        "tags": ["headsmith", *bundle.model_files],
        **({} if license is None else {"license": license}),
    }
