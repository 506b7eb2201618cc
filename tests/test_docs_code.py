"""Every code block of the README and of the other pages runs as it stands, and every flag that they name exists.

The pages share one folder, so that a command which several of them show runs once. A network of a few thousand weights
stands in for `lite0`, with which tests/cli/test_end_to_end.py goes the whole way.
"""

import re
import runpy
import shlex
import shutil
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import numpy as np
import pytest
import torch
import typer.main
from markdown_code import NOT_RUN, Block, anchors, blocks, commands, links, outputs, reason_not_run, spans
from typer.testing import CliRunner

from headsmith.cli import app
from headsmith.evaluate.benchmark.plan import read_config
from headsmith.evaluate.metrics import score_rows
from headsmith.evaluate.zoo.manifest import read_manifest
from headsmith.export import export_classifier
from headsmith.models import backbone_sources
from headsmith.models.execution_provider import provider_of
from headsmith.models.recipe_file import read_recipe, recipe_of
from headsmith.trainer import FeatureSet, extract, train
from headsmith.trainer.sweep import sweeping
from headsmith.trainer.sweep.grid import read_plan

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
# Pages that begin with the same commands come first.
FIRST = [ROOT / "README.md", DOCS / "start.md", DOCS / "extraction.md"]
PAGES = [*FIRST, ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md", *sorted({*DOCS.glob("*.md")} - {*FIRST})]
FLAG = re.compile(r"--[a-z0-9][a-z0-9-]*")
GROUP = typer.main.get_command(app)
# Flags of other programs that stand alone between backticks.
OTHERS = {
    "--help": "click's",
    "--ignore-scripts": "npm's",
    "--model-repository": "Triton's",
    "--settings": "of benchmarks.small_sets",
}
CODE = ("headsmith", "models", "trainer", "export", "evaluate")
CLASSES = ("goldfish", "ostrich", "tabby", "beagle", "zebra", "lemon")  # that ImageNet's classifiers know
# YAML blocks by a key that only their kind has: the file that commands read them from, and the reader.
YAML = {
    "grids": ("sweep.yaml", lambda path: read_plan(path, None, None)),
    "models": (
        "zoo.yaml",
        lambda path: [recipe_of(row.preprocessing, row.id, None) for row in read_manifest(path)[:1]],
    ),
    "backbones": ("beside/benchmark.yaml", read_config),
    "options": ("tf32.yaml", provider_of),
    "resize_mode": ("recipe.yaml", lambda path: read_recipe(path, "nchw")),
}
GRAPH = """(float[N,3,224,224] images) => (float[N,9] logits) {
    planes = Conv <strides = [32, 32]> (images, kernel)
    pooled = GlobalAveragePool(planes)
    flat = Flatten(pooled)
    logits = Gemm(flat, weight, bias)
}"""

pytestmark = pytest.mark.filterwarnings("ignore:Use 'content=:DeprecationWarning")  # of the hub's client to its own


@pytest.fixture(scope="module")
def project(image_folder, tiny_backbone, onnx_file, tmp_path_factory):
    """A folder with the files that the pages talk about, small: six classes, a network of a few thousand weights."""
    root = tmp_path_factory.mktemp("project")
    for name in ("weights/ours.pth", "recipe.yaml"):  # that a benchmark's file names
        (root / "beside" / name).parent.mkdir(parents=True, exist_ok=True)
        (root / "beside" / name).touch()
    splits = {split: dict.fromkeys(CLASSES, n) for split, n in (("train", 4), ("val", 1), ("test", 2))}
    photos = shutil.copytree(image_folder(splits), root / "photos")
    shutil.copyfile(photos / "test" / "zebra" / "000.png", root / "photo.jpg")
    features = extract(photos, out=root / "features" / "photos", **tiny_backbone._asdict())
    run = train(features, out=root / "runs" / "photos", epochs=60, learning_rate=0.05, patience=60)
    export_classifier(run, out=root / "bundles" / "photos")
    shutil.copyfile(run.path / "config.yaml", root / "settings.yaml")
    shutil.copyfile(onnx_file(GRAPH, kernel=(6, 3, 8, 8), weight=(6, 9), bias=(9,)), root / "zoo.onnx")
    shutil.copytree(ROOT / "docs", root / "docs")
    random = np.random.default_rng(0)
    labels = np.arange(120) % 6
    rows = random.choice([-1, 1], (6, 1280))[labels] + random.normal(size=(120, 1280))
    for name, size in (("features/imagenet", 1280), ("demo/1000/features", 64)):
        FeatureSet.from_arrays(rows[:, :size].astype(np.float32), labels, out=root / name, class_names=CLASSES)
    torch.save({"embeddings": torch.tensor(rows).float(), "labels": torch.tensor(labels)}, root / "embeddings.p")
    return root


@pytest.fixture(scope="module")
def done():
    """What each command printed whose result lies in the folder of the project."""
    return {}


def forget(name: str, done: dict[str, str]) -> None:
    """Another folder takes the place of ``name``: remove it, and no command stands that wrote it or read it."""
    shutil.rmtree(name, ignore_errors=True)
    for line in [line for line in done if name in line.split()]:
        if done.pop(line, None) is not None:
            for other in outputs(line):
                forget(other, done)


def names_of(page: str) -> dict[str, object]:
    """What the Python of a page takes for granted."""
    random = np.random.default_rng(0)
    logits, labels = random.normal(size=(60, 1000)), random.integers(1000, size=60)
    better = logits + 4 * np.eye(1000)[labels]
    if page == "evaluation.md":
        batches = [(better[:30], labels[:30]), (better[30:], labels[30:])]
        return {
            "batches": batches,
            "scores_of_a": score_rows(logits, labels),
            "scores_of_b": score_rows(better, labels),
        }
    return {"logits": torch.tensor(logits, requires_grad=True), "labels": torch.tensor(labels)}


def run_python(block: Block, names: dict[str, object]) -> str:
    with redirect_stdout(StringIO()) as printed:
        exec(compile(block.text, block.where, "exec"), names)  # noqa: S102 - our own documentation
    return printed.getvalue()


def status(line: str) -> int:
    """What a command ends with: a network of ImageNet guesses what the made-up pictures show."""
    return 4 if line.startswith("headsmith evaluate lite0") else 0


def run_lines(block: Block, done: dict[str, str]) -> str:
    """Run a block's commands; one that ran before, on this page or another, stands with what it left."""
    for line in filter(None, block.lines):
        if line in done or reason_not_run(line):
            continue
        program, *arguments = shlex.split(line)
        assert program == "headsmith", f"{block.where}: {line!r} is no known command; see tests/markdown_code.py"
        for name in outputs(line):
            forget(name, done)
        result = CliRunner().invoke(app, arguments)
        assert result.exit_code == status(line), f"{block.where}: {line}\n{result.output}"
        done[line] = result.output
    return "".join(done.get(line, "") for line in block.lines)


def read_yaml(block: Block) -> None:
    (kind,) = [key for key in YAML if re.search(rf"^{key}:", block.text, re.MULTILINE)]
    name, reader = YAML[kind]
    Path(name).write_text(block.text, encoding="utf-8")
    assert reader(name)


def check_metrics(printed, names):
    share = np.mean([logits.argmax(axis=1) == labels for logits, labels in names["batches"]])
    assert printed.startswith(f"{100 * share:.2f} % (")


def check_standings(printed, names):
    first, second = printed.splitlines()
    assert re.match("b .*tied with the best$", first)
    assert second.startswith("a ")
    assert "tied" not in second


def check_comparison(printed, names):
    with Path("flips.csv").open() as file:
        assert printed.endswith(f" {sum(1 for _ in file) - 1}\n")
    assert Path("results", "report.html").is_file()


def check_estimator(printed, names):
    assert float(printed) > 0.88


# What blocks with these words must have printed.
CHECKS = {
    "evaluation.md": {"Scorer(": check_metrics, "standings(": check_standings, "write_report(": check_comparison},
    "python.md": {"HeadClassifier(": check_estimator},
}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_code_of(page, project, done, tiny_backbone, monkeypatch, hub):
    monkeypatch.setattr(backbone_sources, "_lite0", lambda *_: backbone_sources.find_source(*tiny_backbone))
    monkeypatch.setattr(sweeping, "LEAST_STEPS", 1)  # an epoch of two dozen photographs stays one
    monkeypatch.setenv("HEADSMITH_CACHE", str(project / "cache"))
    monkeypatch.chdir(project)
    found = [block for block in blocks(page) if not block.is_shown_output]
    for block in found:
        if block.kind == "yaml":
            read_yaml(block)
    names, printed = names_of(page.name), {}
    for block in found:
        if block.kind == "python":
            for name in outputs(block.text):
                forget(name, done)
            printed[block.text] = run_python(block, names)
        elif block.kind != "yaml":
            assert not block.kind, f"{block.where}: {block.kind} is not run"
            printed[block.text] = run_lines(block, done)
    for words, check in CHECKS.get(page.name, {}).items():
        (said,) = [said for text, said in printed.items() if words in text]
        check(said, names)


def test_the_reference_of_commands_is_current():
    write_commands = runpy.run_path(str(DOCS / "write_commands.py"))
    assert write_commands["PAGE"].read_text(encoding="utf-8") == write_commands["reference"](), (
        "run python docs/write_commands.py"
    )


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    for link in links(page):
        path, _, anchor = link.partition("#")
        target = page.parent / path if path else page
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


def test_the_places_of_the_architecture_exist():
    places = [span for span in spans(DOCS / "architecture.md") if re.fullmatch(r"[\w/]+(/|\.py)", span)]
    roots = [ROOT, *map(ROOT.joinpath, CODE)]
    assert len(places) > 40
    assert [place for place in places if not any((root / place).exists() for root in roots)] == []


def test_every_page_is_linked_from_the_readme():
    linked = {(ROOT / link.partition("#")[0]).resolve() for link in links(ROOT / "README.md")}
    assert {*PAGES} - linked == {ROOT / "README.md"}


def test_messages_that_are_explained_are_printed():
    source = "\n".join(file.read_text(encoding="utf-8") for folder in CODE for file in (ROOT / folder).rglob("*.py"))
    page = (DOCS / "troubleshooting.md").read_text(encoding="utf-8")
    messages = re.findall(r"^\| `([^`]+)` \|", page.partition("## Messages")[2], re.MULTILINE)
    assert messages
    assert [message for message in messages if message not in source] == []


def test_the_readme_is_a_front_page():
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 110


def test_what_is_not_run_is_still_in_the_pages():
    lines = [line for page in PAGES for block in blocks(page) for line in block.lines]
    assert all(any(line.startswith(start) for line in lines) for start in NOT_RUN)


def flags_of(command) -> set[str]:
    return {flag for parameter in command.params for flag in (*parameter.opts, *parameter.secondary_opts)}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_and_their_flags_exist(page):
    for name, *words in commands(page):
        known = GROUP if name.startswith("--") else GROUP.commands[name]
        assert set(filter(FLAG.fullmatch, [name, *words])) <= flags_of(known), (name, *words)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_flags_that_stand_alone_exist(page):
    known = set(OTHERS).union(*map(flags_of, GROUP.commands.values()))
    for span in spans(page):
        if span.startswith("--"):
            assert set(filter(FLAG.fullmatch, span.split())) <= known, span


def test_targets_and_benchmarks_exist():
    code = [
        line for page in PAGES for line in (*spans(page), *(line for block in blocks(page) for line in block.lines))
    ]
    targets = [line.split()[1] for line in code if line.startswith("make ")]
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert [target for target in targets if not re.search(f"^{target}:", makefile, re.MULTILINE)] == []
    assert (ROOT / ".ci" / "run").is_file()
    benchmarks = [found for line in code if (found := re.search(r"-m benchmarks\.(\w+)(.*)", line))]
    assert targets
    assert benchmarks
    for name, words in (found.groups() for found in benchmarks):
        module, package = ROOT / "benchmarks" / f"{name}.py", ROOT / "benchmarks" / name / "__main__.py"
        source = (package if package.exists() else module).read_text(encoding="utf-8")
        assert [flag for flag in words.split() if FLAG.fullmatch(flag) and f'"{flag}"' not in source] == [], name
