"""Every code block of the README and of the other pages runs as it stands, and every flag that they name exists."""

import re
import shutil
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import numpy as np
import pytest
import torch
import typer.main
from markdown_code import NOT_RUN, Block, blocks, commands, reason_not_run, spans
from typer.testing import CliRunner

from headsmith import evaluate_classifiers
from headsmith.cli import app
from headsmith.evaluate.metrics import score_rows
from headsmith.evaluate.zoo.manifest import read_manifest
from headsmith.export import export_classifier
from headsmith.models.recipe_file import read_recipe, recipe_of
from headsmith.trainer import FeatureSet, extract, train
from headsmith.trainer.sweep.grid import read_plan

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md", *sorted((ROOT / "docs").glob("*.md"))]
FLAG = re.compile(r"--[a-z0-9][a-z0-9-]*")
GROUP = typer.main.get_command(app)
# Flags of other programs that stand alone between backticks.
OTHERS = {
    "--help": "click's",
    "--ignore-scripts": "npm's",
    "--model-repository": "Triton's",
    "--settings": "of benchmarks.small_sets",
}
CLASSES = ("goldfish", "ostrich", "tabby", "beagle", "zebra", "lemon")  # that ImageNet's classifiers know
# YAML blocks by a key that only their kind has: the file that commands read them from, and the reader.
YAML = {
    "grids": ("sweep.yaml", lambda path: read_plan(path, None, None)),
    "models": (
        "zoo.yaml",
        lambda path: [recipe_of(row.preprocessing, row.id, None) for row in read_manifest(path)[:1]],
    ),
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


def run_lines(block: Block) -> str:
    printed = ""
    for line in block.lines:
        if reason_not_run(line):
            continue
        program, *arguments = line.split()
        assert program == "headsmith", f"{block.where}: {line!r} is no known command; see tests/markdown_code.py"
        result = CliRunner().invoke(app, arguments)
        assert result.exit_code == 0, f"{block.where}: {line}\n{result.output}"
        printed += result.output
    return printed


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
    "training.md": {"HeadClassifier(": check_estimator},
}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_code_of(page, project, tmp_path, monkeypatch, hub):
    monkeypatch.setenv("HEADSMITH_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(shutil.copytree(project, tmp_path / "here"))
    if page.name == "evaluation.md":
        evaluate_classifiers(["lite0", "bundles/photos"], data="photos/test", out="results")
    found = [block for block in blocks(page) if not block.is_shown_output]
    for block in found:
        if block.kind == "yaml":
            read_yaml(block)
    names, printed = names_of(page.name), {}
    for block in found:
        for name in block.outputs:
            shutil.rmtree(name, ignore_errors=True)
        if block.kind != "yaml":
            assert block.kind in ("", "python"), f"{block.where}: {block.kind} is not run"
            printed[block.text] = run_python(block, names) if block.kind else run_lines(block)
    for words, check in CHECKS.get(page.name, {}).items():
        (said,) = [said for text, said in printed.items() if words in text]
        check(said, names)


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
        source = (ROOT / "benchmarks" / f"{name}.py").read_text(encoding="utf-8")
        assert [flag for flag in words.split() if FLAG.fullmatch(flag) and f'"{flag}"' not in source] == [], name
