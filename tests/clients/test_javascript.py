"""onnxruntime-node and onnxruntime-web, each from npm, on PNG files that they decode themselves."""

import json
import shutil
import subprocess
from pathlib import Path

import numpy as np
from browser import CHROMIUM, posted_by

JAVASCRIPT = Path(__file__).parent / "javascript"
MODULES = JAVASCRIPT / "node_modules"


def check(found, glyphs):
    assert [answer["label"] for answer in found] == glyphs.labels
    np.testing.assert_allclose([answer["logits"] for answer in found], glyphs.logits, atol=1e-3)


def test_onnxruntime_node(glyphs, need):
    node = shutil.which("node")
    need(node, "Node.js")
    need((MODULES / "onnxruntime-node").is_dir(), "onnxruntime-node")
    model, labels = glyphs.bundle.path / "model.onnx", glyphs.bundle.path / "labels.txt"
    command = [node, JAVASCRIPT / "node.mjs", model, labels, *glyphs.crops]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    check([json.loads(line) for line in done.stdout.splitlines()], glyphs)


def test_onnxruntime_web_in_a_browser(glyphs, need, tmp_path):
    need(CHROMIUM, "Chromium")
    need((MODULES / "onnxruntime-web").is_dir(), "onnxruntime-web")
    for target in (*JAVASCRIPT.iterdir(), *glyphs.crops):
        (tmp_path / target.name).symlink_to(target)
    (tmp_path / "bundle").symlink_to(glyphs.bundle.path)
    (tmp_path / "images.json").write_text(json.dumps([crop.name for crop in glyphs.crops]))
    answer = posted_by(tmp_path)
    assert "error" not in answer, answer
    check(answer["found"], glyphs)
