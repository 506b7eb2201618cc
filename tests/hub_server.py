"""As much of the Hugging Face hub's HTTP interface as its own client needs to make, fill and read a repository."""

import base64
import hashlib
import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import yaml


@dataclass
class Repository:
    private: bool
    files: dict[str, bytes] = field(default_factory=dict)

    @property
    def commit(self) -> str:
        return hashlib.sha1(repr(sorted(self.files.items())).encode()).hexdigest()  # noqa: S324 - as in Git


@dataclass
class Hub:
    """Repositories by name; ``objects`` are large files by SHA-256, uploaded before the commit that names them."""

    address: str = ""
    commit: str = ""  # of the repository that a file was last asked of
    repositories: dict[str, Repository] = field(default_factory=dict)
    objects: dict[str, bytes] = field(default_factory=dict)

    def answer(self, method: str, path: str, body: bytes) -> tuple[int, Any]:
        """The status and the body, bytes or JSON, of one request."""
        if (method, path) == ("POST", "/api/repos/create"):
            return self._create(json.loads(body))
        if (method, path) == ("POST", "/api/validate-yaml"):
            yaml.safe_load(json.loads(body)["content"].split("---")[1])
            return 200, {}
        if method == "PUT":
            self.objects[path.rpartition("/")[2]] = body
            return 200, b""
        match = re.fullmatch(r"(?:/api/models)?/([^/]+/[^/]+?)(?:\.git/info/lfs|/|$)(.*)", path)
        repository = self.repositories.get(match[1]) if match else None
        if match is None or repository is None:
            return 404, {"error": "Repository not found"}
        return self._in(match[1], repository, match[2], body)

    def _create(self, asked: dict[str, Any]) -> tuple[int, Any]:
        name = f"{asked['organization']}/{asked['name']}"
        known = name in self.repositories
        self.repositories.setdefault(name, Repository(asked.get("visibility") == "private"))
        return (409 if known else 200), {"url": f"{self.address}/{name}"}

    def _in(self, name: str, repository: Repository, what: str, body: bytes) -> tuple[int, Any]:
        if what in ("", "revision/main"):
            siblings = [{"rfilename": path} for path in repository.files]
            return 200, {"id": name, "sha": repository.commit, "private": repository.private, "siblings": siblings}
        if what.startswith("tree/"):
            return 200, [
                {"type": "file", "path": path, "size": len(content), "oid": hashlib.sha1(content).hexdigest()}  # noqa: S324
                for path, content in repository.files.items()
            ]
        if what.startswith("preupload/"):
            asked = json.loads(body)["files"]
            modes = {True: "lfs", False: "regular"}
            return 200, {
                "files": [
                    {"path": file["path"], "uploadMode": modes[file["size"] > 10_000], "shouldIgnore": False}
                    for file in asked
                ]
            }
        if what == "/objects/batch":
            objects = [
                entry | {"actions": {"upload": {"href": f"{self.address}/storage/{entry['oid']}"}}}
                for entry in json.loads(body)["objects"]
            ]
            return 200, {"transfer": "basic", "objects": objects}
        if what.startswith("commit/"):
            self._commit(repository, [json.loads(line) for line in body.splitlines()])
            return 200, {"commitUrl": f"{self.address}/{name}", "commitOid": repository.commit}
        self.commit = repository.commit
        content = repository.files.get(re.sub("^resolve/[^/]+/", "", what))
        return (404, {"error": "Entry not found"}) if content is None else (200, content)

    def _commit(self, repository: Repository, lines: list[dict[str, Any]]) -> None:
        for line in lines:
            value = line["value"]
            if line["key"] == "file":
                repository.files[value["path"]] = base64.b64decode(value["content"])
            elif line["key"] == "lfsFile":
                repository.files[value["path"]] = self.objects[value["oid"]]
            elif line["key"] == "deletedFile":
                del repository.files[value["path"]]


@contextmanager
def serve() -> Iterator[Hub]:
    """A hub on this machine."""
    hub = Hub()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self) -> None:
            status, content = hub.answer(self.command, self.path.partition("?")[0], self.body())
            sent = content if isinstance(content, bytes) else json.dumps(content).encode()
            self.send_response(status)
            for header, value in {
                "Content-Length": str(len(sent)),
                "Content-Type": "application/octet-stream" if isinstance(content, bytes) else "application/json",
                "ETag": f'"{hashlib.sha256(sent).hexdigest()}"',
                "X-Repo-Commit": hub.commit,
                **({"X-Error-Code": "RepoNotFound"} if status == 404 else {}),
            }.items():
                self.send_header(header, value)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(sent)

        def body(self) -> bytes:
            if self.headers.get("Transfer-Encoding") != "chunked":
                return self.rfile.read(int(self.headers.get("Content-Length") or 0))
            chunks = []
            while size := int(self.rfile.readline(), 16):
                chunks.append(self.rfile.read(size))
                self.rfile.readline()
            self.rfile.readline()
            return b"".join(chunks)

        do_GET = do_HEAD = do_POST = do_PUT = answer  # noqa: N815 - names of http.server

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        hub.address = f"http://127.0.0.1:{server.server_port}"
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield hub
        server.shutdown()
