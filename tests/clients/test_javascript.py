"""onnxruntime-node and onnxruntime-web, each from npm, on PNG files that they decode themselves."""

import json
import queue
import shutil
import subprocess
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest

JAVASCRIPT = Path(__file__).parent / "javascript"
MODULES = JAVASCRIPT / "node_modules"
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
QUIET = "--no-first-run --disable-background-networking --disable-component-update --disable-sync --disable-quic"


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


def test_onnxruntime_web_in_a_browser(glyphs, need, site):
    need(CHROMIUM, "Chromium")
    need((MODULES / "onnxruntime-web").is_dir(), "onnxruntime-web")
    root, address, answers = site
    flags = ["--headless", "--no-sandbox", "--disable-gpu", *QUIET.split(), f"--user-data-dir={root / 'profile'}"]
    with subprocess.Popen([CHROMIUM, *flags, address], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as browser:
        try:
            answer = answers.get(timeout=120)
        finally:
            browser.terminate()
    assert "error" not in answer, answer
    check(answer["found"], glyphs)


@pytest.fixture
def site(glyphs, tmp_path):
    """A folder on localhost with the page, the bundle and the crops: (folder, its address, queue of what is posted)."""
    root = tmp_path / "site"
    root.mkdir()
    for target in (*JAVASCRIPT.iterdir(), *glyphs.crops):
        (root / target.name).symlink_to(target)
    (root / "bundle").symlink_to(glyphs.bundle.path)
    (root / "images.json").write_text(json.dumps([crop.name for crop in glyphs.crops]))
    answers = queue.SimpleQueue()

    class Handler(SimpleHTTPRequestHandler):
        def do_POST(self):
            answers.put(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=root)) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield root, f"http://127.0.0.1:{server.server_port}/", answers
        server.shutdown()
