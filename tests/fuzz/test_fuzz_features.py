"""Feature files, feature sets, settings and lists that are damaged."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest
import torch
import yaml
from harness import Target
from safetensors.numpy import save_file

from headsmith.core.csv_file import read_csv
from headsmith.core.text_file import read_lines
from headsmith.evaluate.truth_file import class_names_of
from headsmith.models.recipe_file import read_recipe
from headsmith.trainer import FeatureSet
from headsmith.trainer.sweep.grid import read_plan
from headsmith.trainer.train_config import TrainConfig

N, D = 40, 6
FEATURES = np.random.default_rng(0).normal(size=(N, D)).astype(np.float32)
LABELS = np.arange(N) % 4
NAMES = [f"class {label}" for label in LABELS]


def written(name, write):
    def healthy(folder):
        write(folder / name)
        return folder / name

    return healthy


def table():
    return pa.table({"x": FEATURES.tolist(), "label": NAMES, "id": [f"row {row}" for row in range(N)]})


def arrow(path):
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table().schema) as writer:
        writer.write_table(table())


def text(path):
    heading = [*(f"f{place}" for place in range(D)), "label"]
    lines = [heading, *([*map(str, row), name] for row, name in zip(FEATURES, NAMES, strict=True))]
    path.write_text("".join(f"{';'.join(line)}\n" for line in lines))


def legacy(path):
    torch.save({"x": torch.tensor(FEATURES), "y": torch.tensor(LABELS)}, path, _use_new_zipfile_serialization=False)


def arrays(folder):
    np.save(folder / "x.npy", FEATURES)
    np.save(folder / "x_labels.npy", LABELS)


def feature_set(folder):
    FeatureSet.from_arrays(FEATURES, LABELS, class_names=list("abcd"), out=folder)


def read_features(path):
    found = FeatureSet.load(path)
    return [found.class_names, {split: (*found.arrays(split), found.ids(split)) for split in found.splits}]


def read_array(folder):
    return read_features(folder / "x.npy")


SETTINGS = {
    "loss": "softsort",
    "p_k": [0.5, 0.5],
    "learning_rate": 0.01,
    "epochs": 3,
    "balanced": True,
    "start": "zeros",
}
SWEEP = {
    "final_seeds": [0, 1],
    "grids": [{"name": "a", "loss": "softsort", "learning_rate": [0.1, 0.01]}, {"m": [4, 8]}],
}
RECIPE = {"resize_mode": "exact", "resize_size": 8, "crop_size": [8, 8], "interpolation": "bilinear", "scale": 1}
RECIPE |= {"mean": [0.5, 0.5, 0.5], "std": 1, "channel_order": "rgb", "layout": "nchw"}


def settings(values):
    return written("x.yaml", lambda path: path.write_text(yaml.safe_dump(values)))


def labels(path):
    path.write_text("".join(f"{row} {name}\n" for row, name in enumerate(dict.fromkeys(NAMES))))


TARGETS = [
    Target(
        "features_npz",
        written("x.npz", lambda path: np.savez_compressed(path, x=FEATURES, y=LABELS)),
        read_features,
        change_is_seen=False,
        count=100,
    ),
    Target(
        "features_npy",
        written("set", lambda path: (path.mkdir(), arrays(path))),
        read_array,
        change_is_seen=False,
        count=100,
    ),
    Target(
        "features_pt",
        written("x.pt", lambda path: torch.save({"x": torch.tensor(FEATURES), "y": torch.tensor(LABELS)}, path)),
        read_features,
        change_is_seen=True,
    ),
    Target("features_legacy_pt", written("x.pt", legacy), read_features, change_is_seen=False, count=100),
    Target(
        "features_safetensors",
        written("x.safetensors", lambda path: save_file({"x": FEATURES, "y": LABELS}, path)),
        read_features,
        change_is_seen=False,
        count=100,
    ),
    Target(
        "features_parquet",
        written("x.parquet", lambda path: pq.write_table(table(), path)),
        read_features,
        change_is_seen=False,
        count=100,
    ),
    Target("features_arrow", written("x.arrow", arrow), read_features, change_is_seen=False, count=100),
    Target(
        "features_feather",
        written("x.feather", lambda path: feather.write_feather(table(), str(path), compression="zstd")),
        read_features,
        change_is_seen=False,
        count=100,
    ),
    Target("features_csv", written("x.csv", text), read_features, change_is_seen=False, count=100),
    Target("feature_set", written("set", feature_set), read_features, change_is_seen=False, count=100),
    Target("settings", settings(SETTINGS), TrainConfig.load, change_is_seen=False, count=100),
    Target(
        "sweep_file", settings(SWEEP), lambda path: read_plan(path, None, None).trials, change_is_seen=False, count=100
    ),
    Target("recipe", settings(RECIPE), lambda path: read_recipe(path, None), change_is_seen=False, count=100),
    Target("labels", written("x.txt", labels), lambda path: read_lines(path), change_is_seen=False, count=100),
    Target(
        "class_ids", written("x.txt", labels), lambda path: class_names_of(str(path)), change_is_seen=False, count=100
    ),
    Target("truth_csv", written("x.csv", text), lambda path: read_csv(path).rows, change_is_seen=False, count=100),
]


@pytest.mark.parametrize("target", TARGETS, ids=str)
def test_a_damaged_file_is_refused_in_one_line(fuzz, target):
    ends = fuzz(target)
    assert ends["refused"] or ends["changed"], json.dumps(ends)
