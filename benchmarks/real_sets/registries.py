"""Packages of Debian, npm and PyPI, by the tools' own clients and settings; what comes is held to pinned hashes."""

import json
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath

from headsmith.core.errors import InputError
from headsmith.core.files import make_folder, new_file, read_json, sha256_file, write_json

PINS = Path(__file__).with_name("pins.json")
_HINTS = {
    "apt": "run `apt-get update`; on another release of Debian take what it has with --repin",
    "npm": "is npm there, and its registry?",
    "pip": "is pip there, and its index?",
}
_INDEX = "apt/index.txt"


class Registries:
    """A folder of downloads, and the hash of each.

    Args:
        folder: Where downloads are kept, a folder for each client.
        repin: Take the newest of all packages and write their versions and hashes to `PINS`.
    """

    def __init__(self, folder: Path, *, repin: bool = False) -> None:
        self.folder, self.repin = folder, repin
        self.pins: dict[str, dict[str, str]] = read_json(PINS) if PINS.exists() else {}

    def fetch(self, client: str, names: Iterable[str]) -> dict[str, Path]:
        """The files of packages, downloaded where they are not there yet.

        Args:
            client: ``apt``, ``npm`` or ``pip``.
            names: Packages.

        Returns:
            Each package's file.

        Raises:
            InputError: No pin, the client fails, or a file is not the pinned one.
        """
        wanted = {name: f"{client}/{name}" for name in names}
        if not self.repin and (unknown := [key for key in wanted.values() if key not in self.pins]):
            raise InputError(f"{PINS.name}: {unknown[0]}: no hash found, expected one; run with --repin")
        lacking = [name for name, key in wanted.items() if not self._file(key)]
        for start in range(0, len(lacking), 40):
            self._download(client, lacking[start : start + 40])
        return {name: self._checked(key) for name, key in wanted.items()}

    def debian_index(self) -> Path:
        """The records of all packages that apt knows, checked against the pin as a download is."""
        path = self.folder / _INDEX
        if not path.exists():
            text = _said("apt", ["apt-cache", "dumpavail"], self.folder)
            make_folder(path.parent)
            with new_file(path) as file:
                file.write_text(descriptions(text), encoding="utf-8")
            if self.repin:
                self._pin(_INDEX, {"file": path.name, "sha256": sha256_file(path)})
        return self._checked(_INDEX)

    def hashes(self, packages: Iterable[tuple[str, str]]) -> dict[str, str]:
        """The pinned hashes of packages ``(client, name)``."""
        keys = [f"{client}/{name}" for client, name in packages]
        return {key: self.pins.get(key, {}).get("sha256", "") for key in keys}

    def _file(self, key: str) -> Path | None:
        pin = self.pins.get(key)
        path = self.folder / key.split("/")[0] / pin["file"] if pin else None
        return path if path and path.exists() else None

    def _checked(self, key: str) -> Path:
        path = self._file(key)
        if path is None:
            raise InputError(f"{key}: no download of {self.pins[key]['file']} found; run again")
        if (found := sha256_file(path)) != (pinned := self.pins[key]["sha256"]):
            raise InputError(
                f"{path}: sha256 {found[:12]} found, expected {pinned[:12]} as pinned; "
                "delete it and run again, or take what the registry has with --repin"
            )
        return path

    def _download(self, client: str, names: list[str]) -> None:
        folder = self.folder / client
        make_folder(folder)
        with tempfile.TemporaryDirectory(dir=self.folder) as work:
            _said(client, _command(client, [self._wish(client, name) for name in names]), Path(work))
            files = {package_of(client, file.name): file for file in Path(work).iterdir()}
            for name in names:
                file = files.get(name if client == "apt" else _plain(name))
                if file is None:
                    raise InputError(f"{client}: no file of {name} came, expected one; {_HINTS[client]}")
                shutil.move(file, folder / file.name)
                if self.repin:
                    version = version_of(client, file.name)
                    pin = {"version": version, "file": file.name, "sha256": sha256_file(folder / file.name)}
                    self._pin(f"{client}/{name}", pin)

    def _wish(self, client: str, name: str) -> str:
        """The package with the pinned version, as the client writes it."""
        pin = self.pins.get(f"{client}/{name}")
        if self.repin or pin is None:
            return name
        return name + {"apt": "=", "npm": "@", "pip": "=="}[client] + pin["version"]

    def _pin(self, key: str, pin: dict[str, str]) -> None:
        self.pins[key] = pin
        write_json(PINS, dict(sorted(self.pins.items())))


def _command(client: str, wishes: list[str]) -> list[str]:
    if client == "pip":
        return [sys.executable, "-m", "pip", "download", "-q", "--no-deps", *wishes]
    return {"apt": ["apt-get", "download", "-qq"], "npm": ["npm", "pack", "--loglevel=error"]}[client] + wishes


def _said(client: str, command: list[str], folder: Path) -> str:
    make_folder(folder)
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True)  # noqa: S603 - a fixed list
    except FileNotFoundError as error:
        raise InputError(f"{client}: {command[0]} not found; {_HINTS[client]}") from error
    if done.returncode:
        lines = done.stderr.strip().splitlines() or ["no reason given"]
        reason = next((line for line in lines if re.match("E:|ERROR|npm error", line)), lines[-1])
        raise InputError(f"{client}: {reason}; {_HINTS[client]}")
    return done.stdout


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


def _parts(client: str, file: str) -> tuple[str, str]:
    if client == "apt":
        name, version, _ = file.split("_", 2)
        return name, version.replace("%3a", ":")
    if client == "npm":
        found = re.fullmatch(r"(.+?)-(\d+\.\d.*)\.tgz", file)
        if found is None:
            raise InputError(f"npm: {file} found, expected NAME-VERSION.tgz")
        return _plain(found[1]), found[2]
    name, version = file.removesuffix(".tar.gz").split("-")[:2]
    return _plain(name), version


def package_of(client: str, file: str) -> str:
    """The package that a downloaded file is of; for npm and pip with only letters, digits and dashes."""
    return _parts(client, file)[0]


def version_of(client: str, file: str) -> str:
    """The version that a downloaded file is of."""
    return _parts(client, file)[1]


def descriptions(index: str) -> str:
    """Lines of package, source package, section and description, from the records of apt's index.

    Records of sections that are not Debian's (``contrib/...``, other repositories) have no such line.
    """
    lines = []
    for record in index.split("\n\n"):
        fields = dict(line.split(": ", 1) for line in record.splitlines() if ": " in line and line[0] not in " \t")
        if {"Package", "Section", "Description"} <= fields.keys() and "Description-md5" in fields:
            source = fields.get("Source", fields["Package"]).split(" ")[0]
            values = (fields["Package"], source, fields["Section"], fields["Description"])
            lines.append("\t".join(value.replace("\t", " ").strip() for value in values))
    return "\n".join(sorted(set(lines))) + "\n"


def members(path: Path, wanted: re.Pattern[str]) -> Iterator[tuple[str, bytes]]:
    """The plain files of a downloaded package whose names fit, in the package's order; links are not followed."""
    if path.suffix == ".whl":
        with zipfile.ZipFile(path) as wheel:
            yield from ((name, wheel.read(name)) for name in wheel.namelist() if wanted.search(name))
    elif path.suffix == ".deb":
        with tempfile.TemporaryFile() as data:
            subprocess.run(["dpkg-deb", "--fsys-tarfile", str(path)], stdout=data, check=True)  # noqa: S603, S607
            data.seek(0)
            with tarfile.open(fileobj=data) as tar:
                yield from _tar_members(tar, wanted)
    else:
        with tarfile.open(path) as tar:
            yield from _tar_members(tar, wanted)


def _tar_members(tar: tarfile.TarFile, wanted: re.Pattern[str]) -> Iterator[tuple[str, bytes]]:
    for member in tar:
        if member.isfile() and wanted.search(member.name) and (file := tar.extractfile(member)):
            yield str(PurePosixPath(member.name)), file.read()


def package_json(path: Path, name: str) -> dict[str, object]:
    """A JSON file of an npm package."""
    for _, content in members(path, re.compile(rf"^package/{re.escape(name)}$")):
        return dict(json.loads(content))
    return {}
