"""Ways to damage a file. Each takes the bytes of a healthy one and a seeded generator, and gives other bytes."""

import io
import json
import re
import struct
import warnings
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import yaml

EDGE = 256  # headers, and the directories at the end of zip and parquet files, lie this near to an end
STRANGE: tuple[Any, ...] = (
    None,
    True,
    0,
    -1,
    2**31,
    2**63,
    -(2**63),
    10**400,
    1e308,
    float("nan"),
    float("inf"),
    "",
    "\x00",
    "\x1b[31m",
    "../../x",
    "/etc/passwd",
    "x" * 100_000,
    "é\ufeff\U0001f600",
    [],
    {},
    [[]],
    [None],
    {"x": None},
)


@dataclass(frozen=True)
class Mutation:
    """One way to damage a file.

    Attributes:
        name: What it does.
        apply: The healthy bytes, those of another file (or the same one), and a generator, to other bytes.
        sealed: Whether checksums of the container fit what it writes, so that no reader can see the change by them.
    """

    name: str
    apply: Callable[[bytes, bytes, Random], bytes]
    sealed: bool = False


def flip_bits(data: bytes, _: bytes, random: Random) -> bytes:
    """One to eight bits."""
    changed = bytearray(data)
    for _ in range(random.choice((1, 1, 1, 2, 8))):
        changed[_place(data, random)] ^= 1 << random.randrange(8)
    return bytes(changed)


def overwrite_run(data: bytes, _: bytes, random: Random) -> bytes:
    """A run of random bytes, of one byte, or of zeros."""
    start, size = _place(data, random), random.choice((1, 4, 16, 64, 512))
    run = random.choice((random.randbytes(size), bytes([random.randrange(256)]) * size, b"\xff" * size, bytes(size)))
    return data[:start] + run + data[start + size :]


def zero_block(data: bytes, _: bytes, random: Random) -> bytes:
    """What a disk gives for a block that was never written."""
    start = _place(data, random) // 512 * 512
    size = min(len(data) - start, 512 * random.randint(1, 8))
    return data[:start] + bytes(size) + data[start + size :]


def truncate(data: bytes, _: bytes, random: Random) -> bytes:
    """The end is missing, or the beginning."""
    cut = random.choice((0, 1, random.randrange(len(data)), max(0, len(data) - random.randint(1, EDGE))))
    return data[:cut] if random.random() < 0.8 else data[cut:]


def insert(data: bytes, _: bytes, random: Random) -> bytes:
    """Bytes that were not there, or a part of the file twice."""
    start, size = _place(data, random), random.choice((1, 2, 4, 8, 64, 1024))
    return data[:start] + random.choice((random.randbytes(size), data[start : start + size])) + data[start:]


def remove(data: bytes, _: bytes, random: Random) -> bytes:
    """A part in the middle is missing."""
    start = _place(data, random)
    return data[:start] + data[start + random.choice((1, 2, 4, 8, 64, 1024)) :]


def splice(data: bytes, other: bytes, random: Random) -> bytes:
    """The beginning of one file and the end of another; or a part of another in its middle."""
    start, from_ = _place(data, random), random.randrange(len(other) or 1)
    if random.random() < 0.5:
        return data[:start] + other[from_:]
    part = other[from_ : from_ + random.choice((8, 64, 512, 4096))]
    return data[:start] + part + data[start + len(part) :]


def change_length(data: bytes, _: bytes, random: Random) -> bytes:
    """A whole number near either end, where lengths, counts and offsets stand."""
    form = random.choice("BHIQ")
    form = random.choice("<>") + form
    size = struct.calcsize(form)
    if len(data) < size:
        return data + b"\xff"
    edge = min(EDGE, len(data) - size)
    start = random.randint(0, edge) if random.random() < 0.6 else len(data) - size - random.randint(0, edge)
    (value,), top = struct.unpack_from(form, data, start), 256**size - 1
    values = (0, 1, top, top - 1, top // 2, top // 2 + 1, value + 1, value - 1, value * 2, value + 2**20, len(data))
    changed = bytearray(data)
    struct.pack_into(form, changed, start, random.choice(values) & top)
    return bytes(changed)


BYTES = tuple(
    Mutation(function.__name__, function)
    for function in (flip_bits, overwrite_run, zero_block, truncate, insert, remove, splice, change_length)
)


def change_json(data: bytes, _: bytes, random: Random) -> bytes:
    """A field of a JSON text."""
    text = json.dumps(_changed_field(json.loads(data), random))
    return _extreme(text, random).encode(errors="surrogatepass")


def change_yaml(data: bytes, _: bytes, random: Random) -> bytes:
    """A field of a YAML text."""
    text = yaml.safe_dump(_changed_field(yaml.safe_load(data), random))
    return _extreme(text, random).encode(errors="surrogatepass")


def change_member(data: bytes, other: bytes, random: Random) -> bytes:
    """The content of one member of a zip archive, whose checksum then fits."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = [(entry, archive.read(entry)) for entry in archive.infolist()]
    chosen = random.randrange(len(members))
    with io.BytesIO() as file:
        with zipfile.ZipFile(file, "w") as archive:
            for place, (entry, content) in enumerate(members):
                if place == chosen:
                    content = random.choice(kinds(entry.filename, content)).apply(content or b"\0", other, random)
                archive.writestr(entry, content)
        return file.getvalue()


def change_members(data: bytes, _: bytes, random: Random) -> bytes:
    """Which members a zip archive has: one left out, twice, under another name, or two exchanged."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = [(entry.filename, archive.read(entry)) for entry in archive.infolist()]
    place, second = random.randrange(len(members)), random.randrange(len(members))
    (name, content), (name2, content2) = members[place], members[second]
    what = random.randrange(4)
    if what == 0:
        del members[place]
    elif what == 1:
        members.append((name, content2))
    elif what == 2:
        members[place] = (random.choice((name + "x", "../" + name, name.upper(), "", "x/" + name)), content)
    else:
        members[place], members[second] = (name, content2), (name2, content)
    with io.BytesIO() as file:
        with warnings.catch_warnings(), zipfile.ZipFile(file, "w") as archive:
            warnings.filterwarnings("ignore", message="Duplicate name")
            for name, content in members:
                archive.writestr(name or " ", content)
        return file.getvalue()


def kinds(name: str, data: bytes) -> tuple[Mutation, ...]:
    """The mutations that suit a file: those of bytes, and those of what its content is."""
    if data[:2] == b"PK":
        return (*BYTES, *(Mutation(kind.__name__, kind, sealed=True) for kind in (change_member, change_members) * 4))
    if Path(name).suffix in (".yaml", ".yml"):
        return (*BYTES, *[Mutation("change_yaml", change_yaml)] * 8)
    if data[:1] in (b"{", b"["):
        try:
            json.loads(data)
        except ValueError:
            return BYTES
        return (*BYTES, *[Mutation("change_json", change_json)] * 8)
    return BYTES


def _place(data: bytes, random: Random) -> int:
    """Anywhere, but in half of the cases near an end, where the structure of most formats stands."""
    last = max(0, len(data) - 1)
    near = random.randint(0, min(EDGE, last))
    return random.choice((random.randint(0, last), random.randint(0, last), near, last - near))


def _changed_field(value: Any, random: Random) -> Any:
    """The value with one of its fields changed, left out, renamed, doubled, or put in a list."""
    places = list(_places(value))
    if not places:
        return random.choice(STRANGE)
    holder, key = random.choice(places)
    what = random.randrange(8)
    if what == 0:
        del holder[key]
    elif what == 1:
        holder[key] = [holder[key]]
    elif what == 2:
        other, place = random.choice(places)
        holder[key] = json.loads(json.dumps(other[place]))
    elif what == 3 and isinstance(holder, dict):
        holder[f"{key}_"] = holder.pop(key)
    elif what == 4 and isinstance(holder, list):
        holder.append(holder[key])
    elif what == 5 and isinstance(holder[key], int | float):
        holder[key] = holder[key] * random.choice((-1, 2, 1000)) + random.choice((-1, 0.5, 1))
    elif what == 6:
        holder[key] = str(holder[key])
    else:
        holder[key] = random.choice(STRANGE)
    return value


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    keys = list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else []
    for key in keys:
        yield value, key
        yield from _places(value[key])


def _extreme(text: str, random: Random) -> str:
    """Now and then in more brackets than a parser's stack can hold, or with a number of 5,000 digits."""
    if random.random() < 0.02:
        return "[" * 10_000 + text + "]" * 10_000
    return re.sub(r"\d+", "9" * 5000, text, count=1) if random.random() < 0.02 else text
