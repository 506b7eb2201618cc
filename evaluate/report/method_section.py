"""What somebody needs to know who wants the same figures again."""

from collections.abc import Sequence

from ..results import Results
from .ranked_models import RankedModel

HASH = 16
WARM_UP = "left out: before its clock starts, every model has answered a batch, whose time is the first run’s"
LATENCY = (
    "median, and 10 % to 90 % of the runs with one input; models that were evaluated together took turns, in five "
    "rounds, and the first run of each turn is left out"
)
MEMORY = (
    "what the process grew by when it opened the file and answered one batch; empty where memory that was freed before "
    "was used again, so that nobody can tell"
)
RANDOM = "nothing: intervals are closed forms and tests are exact"
HEADINGS = (
    *("Model", "Source", "File", "Fingerprint", "Preprocessing", "Labels", "Provider", "Threads", "Batch", "Runtime"),
    *("Device", "Load s", "First run s", "Memory MB", "Other runtime", "RankedModel"),
)


def method(results: Results, models: Sequence[RankedModel]) -> list[tuple[str, str]]:
    """What holds for all classifiers, as terms and texts."""
    data, first = results.data, models[0].result
    n = f"{data.n:,} found, {first.n:,} scored, {len(first.unreadable):,} unreadable, {first.duplicates:,} duplicates"
    found = [("Data", data.name), ("Fingerprint", data.fingerprint), ("Inputs", n)]
    found += [("Warning", str(warning)) for warning in data.warnings]
    if first.unreadable:
        listed = ", ".join(f"{one.id} ({one.reason})" for one in first.unreadable[:5])
        found.append(("Unreadable", listed + (", ..." if len(first.unreadable) > 5 else "")))
    by_versions: dict[str, list[str]] = {}
    for model in models:
        text = ", ".join(f"{name} {version}" for name, version in model.result.setup.versions.items())
        by_versions.setdefault(text, []).append(model.name)
    for text, names in by_versions.items():
        found.append(("Versions", text if len(by_versions) == 1 else f"{', '.join(names)}: {text}"))
    return [*found, ("Warm-up", WARM_UP), ("Latency", LATENCY), ("Memory", MEMORY), ("Drawn at random", RANDOM)]


def setup(model: RankedModel) -> list[str]:
    """A line of the table with `HEADINGS`."""
    made, speed, other = model.result.setup, model.result.speed, model.result.against
    on_cpu = model.result.beside_cpu
    elsewhere = sum(made.nodes.values()) - made.nodes.get(made.provider, 0)
    return [
        model.name,
        model.result.source,
        f"{made.file}, {made.bytes / 1e6:.1f} MB",
        made.model_sha256[:HASH],
        _preprocessing(model),
        made.labels_sha256[:HASH],
        made.provider + (f", {elsewhere} nodes elsewhere" if elsewhere else "") + (f"; {on_cpu}" if on_cpu else ""),
        str(made.threads),
        str(made.batch_size),
        made.runtime,
        made.device,
        f"{speed.load_seconds:.2f}",
        f"{speed.first_run_seconds:.2f}",
        "" if speed.memory_bytes is None else f"{speed.memory_bytes / 1e6:,.0f}",
        f"{other.runtime}: {other.different} flips, {other.tie} ties" if other else "",
        made.created,
    ]


def _preprocessing(model: RankedModel) -> str:
    made = model.result.setup
    if made.image_size is None:
        return "none: features"
    crop = f", {100 * made.crop_pct:.1f} % crop" if made.crop_pct else ""
    return f"{made.image_size} px{crop}, {made.interpolation}, {made.preprocessing_sha256[:HASH]}"
