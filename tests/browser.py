"""Chromium, and a server on this machine that it reads pages from."""

import json
import queue
import shutil
import subprocess
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
QUIET = "--no-first-run --disable-background-networking --disable-component-update --disable-sync --disable-quic"


def posted_by(root: Path, page: str = "") -> Any:
    """Open a page of a folder in Chromium and give the JSON that it posts; the profile is put into the folder."""
    answers: queue.SimpleQueue[Any] = queue.SimpleQueue()

    class Handler(SimpleHTTPRequestHandler):
        def do_POST(self) -> None:
            answers.put(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=root)) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        flags = ["--headless", "--no-sandbox", "--disable-gpu", *QUIET.split(), f"--user-data-dir={root / 'profile'}"]
        command = [str(CHROMIUM), *flags, f"http://127.0.0.1:{server.server_port}/{page}"]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as browser:
            try:
                return answers.get(timeout=120)
            finally:
                browser.terminate()
                server.shutdown()
