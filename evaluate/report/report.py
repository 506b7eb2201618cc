"""One HTML page that holds all that a results folder says."""

from importlib.resources import files
from pathlib import Path

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from ...core.arguments import typed
from ...core.errors import InputError
from ...core.files import check_replaceable, make_folder, new_file
from ..benchmark.benchmark_record import RECORD
from ..benchmark.finished_benchmark import Benchmark
from ..benchmark.measure_files import RESULTS
from ..results import Results, load_results
from .figures_as_text import breakable, p_value, percent, points, visible
from .page_content import content

GENERATOR = '<meta name="generator" content="headsmith report">'


@typed
def write_report(results: str | Path | Results, *, out: str | Path | None = None) -> Path:
    """Write a page about all classifiers of a results folder, which needs no network and no other file.

    Args:
        results: A results folder; or a benchmark's, of which the page shows the leaderboard too.
        out: The page; one that `write_report` wrote is replaced, nothing else. ``None`` is ``report.html`` in the
            results folder.

    Returns:
        The page.

    Raises:
        InputError: Not a results folder, or no classifier in it was measured; or ``out`` is a folder or no such page.
    """
    benchmark = _benchmark(results)
    if benchmark is not None:
        results = benchmark.path / RESULTS / benchmark.record.provider
    found = results if isinstance(results, Results) else load_results(results)
    folder = found.path if benchmark is None else benchmark.path
    path = folder / "report.html" if out is None else Path(out)
    if path.is_dir():
        raise InputError(f"--out {path}: is a folder, expected the name of a page such as {path / 'report.html'}")
    page = render(found, benchmark)
    check_replaceable(path, GENERATOR, "a page of `headsmith report`")
    make_folder(path.parent)
    with new_file(path) as temporary:
        temporary.write_text(page, encoding="utf-8")
    return path


def _benchmark(results: str | Path | Results) -> Benchmark | None:
    """The benchmark that a folder holds, if it holds one."""
    if isinstance(results, Results) or not (Path(results) / RECORD).is_file():
        return None
    return Benchmark.load(results)


def render(results: Results, benchmark: Benchmark | None = None) -> str:
    """The page as text; for the errors see `write_report`."""
    folder = files(__package__)
    parts = {name: (folder / f"page.{name}").read_text(encoding="utf-8") for name in ("html", "css", "js")}
    environment = Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=StrictUndefined, finalize=visible
    )
    environment.filters |= {"percent": percent, "points": points, "p_value": p_value, "breakable": breakable}
    template = environment.from_string(parts["html"])
    return template.render(content(results, benchmark), css=Markup(parts["css"]), js=Markup(parts["js"]))  # noqa: S704
