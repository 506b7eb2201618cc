"""Zip archives in which every reader finds the same members.

A zip file has a directory at its end, and readers differ in how they look for it: one trusts the offset that the end
record states, another takes what lies just before that record. torch does not check checksums either. So a file of
torch is first read here, byte by byte and strictly; what decides what may run is read from `Archive`, and torch gets
`Archive.rebuilt`, where nothing but those members is.

The format: PKWARE, APPNOTE.TXT 6.3.10, sections 4.3 and 4.4.
"""

import struct
import tempfile
import zipfile
import zlib
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, NamedTuple

from .errors import DamagedFileError
from .files import regular_file

_LOCAL, _ENTRY = struct.Struct("<4s5H3L2H"), struct.Struct("<4s6H3L5H2L")
_END, _END64, _LOCATOR = struct.Struct("<4s4H2LH"), struct.Struct("<4sQ2H2L4Q"), struct.Struct("<4sLQL")
_TOP16, _TOP32 = 0xFFFF, 0xFFFFFFFF
_ENCRYPTED, _DESCRIPTOR_FOLLOWS = 0x2041, 0x8
_DESCRIPTORS = (12, 16, 20, 24)
_CHUNK, _LARGE = 1 << 20, 1 << 31
_DIRECTORY, _INFLATED = 1 << 26, 1 << 26  # bytes: the longest directory, the longest compressed member


class _DamageError(ValueError):
    """What is wrong with the archive."""


class Member(NamedTuple):
    """Where a member lies: its offset in the file, its bytes there, its bytes in all, CRC-32, and how it is packed."""

    offset: int
    packed: int
    size: int
    crc: int
    method: int


@dataclass(frozen=True)
class Archive:
    """An archive that was read to its end: structure, names and checksums fit.

    Attributes:
        path: The file.
        root: The folder that all members lie in.
        members: By name without the root.
        again: What to do where it is damaged.
    """

    path: Path
    root: str
    members: dict[str, Member]
    again: str

    def read(self, name: str) -> bytes:
        """The content of a member."""
        with self.path.open("rb") as file:
            return b"".join(_content(file, self.members[name]))

    @contextmanager
    def rebuilt(self, *, without: Collection[str] = (), instead: Mapping[str, bytes] | None = None) -> Iterator[Path]:
        """A temporary file of the same name with these members and nothing else, none of them compressed.

        Args:
            without: Members that are left out.
            instead: The content that some members get.

        Raises:
            DamagedFileError: The file changed since it was checked.
        """
        instead = instead or {}
        with tempfile.TemporaryDirectory(prefix="headsmith-") as folder:
            copy = Path(folder) / self.path.name
            with zipfile.ZipFile(copy, "w") as archive, self.path.open("rb") as file:
                for name in (name for name in self.members if name not in without):
                    with archive.open(f"{self.root}/{name}", "w", force_zip64=self.members[name].size > _LARGE) as to:
                        to.writelines([instead[name]] if name in instead else self._checked(file, name))
            yield copy

    def _checked(self, file: IO[bytes], name: str) -> Iterator[bytes]:
        try:
            yield from _checked(file, self.members[name])
        except (_DamageError, zlib.error) as error:
            raise damaged_archive(self.path, error, self.again) from None


def is_archive(path: Path) -> bool:
    """Whether a file begins as a zip archive does, by which torch tells its files from those before torch 1.6."""
    with regular_file(path).open("rb") as file:
        return file.read(4) == b"PK\x03\x04"


def checked_archive(path: Path, again: str = "get it again") -> Archive:
    """Read an archive of torch strictly, checksums included.

    Nothing may stand before the first member, between members, or after the end record; names are unique whatever
    their case and alike in both places where they stand; no two members overlap.

    Raises:
        DamagedFileError: The file is not so.
    """
    try:
        with regular_file(path).open("rb") as file:
            entries = list(_entries(file, path.stat().st_size))
            for _, member in entries:
                for _ in _checked(file, member):
                    pass
            root = _check_names([name for name, _ in entries])
    except (_DamageError, struct.error, zlib.error) as error:
        raise damaged_archive(path, error, again) from None
    return Archive(path, root, {name.partition("/")[2]: member for name, member in entries}, again)


def damaged_archive(path: Path, reason: object, again: str) -> DamagedFileError:
    """The error for an archive that is not as torch writes it."""
    return DamagedFileError(f"{path}: damaged or not a torch archive ({reason}); {again}")


def _check_names(names: list[str]) -> str:
    """The one folder that all names lie in; torch looks names up whatever their case."""
    if len({name.casefold() for name in names}) < len(names):
        raise _DamageError("a name is repeated")
    for name in names:
        parts = name.split("/")
        if not name.isprintable() or "\\" in name or len(parts) < 2 or {"", ".", ".."} & set(parts):
            raise _DamageError(f"a member is called {name[:80]!r}")
    roots = {name.partition("/")[0] for name in names}
    if len(roots) != 1:
        raise _DamageError(f"{len(roots)} folders in it, expected 1")
    return roots.pop()


def _entries(file: IO[bytes], size: int) -> Iterator[tuple[str, Member]]:
    """The members, in their order, which must fill the file up to its directory."""
    begin, end, count = _directory(file, size)
    if end - begin > _DIRECTORY:
        raise _DamageError("its directory is too long")
    file.seek(begin)
    listed = list(_listed(file.read(end - begin)))
    if len(listed) != count:
        raise _DamageError(f"{len(listed)} members, the end record says {count}")
    place = 0
    for name, flags, offset, member in sorted(listed, key=lambda entry: entry[2]):
        gap = offset - place
        if gap and gap not in _DESCRIPTORS:
            raise _DamageError(f"{gap} bytes before {name[:80]!r} that belong to no member")
        start = _start(file, offset, name, flags, member)
        place = start + member.packed
        if place > begin:
            raise _DamageError(f"{name[:80]!r} ends behind the directory")
        yield name, member._replace(offset=start)
    if begin - place and begin - place not in _DESCRIPTORS:
        raise _DamageError("bytes before its directory that belong to no member")


def _directory(file: IO[bytes], size: int) -> tuple[int, int, int]:
    """Where the directory begins and ends, and how many members it has; the end record ends the file."""
    if size < _END.size:
        raise _DamageError(f"{size} bytes, truncated")
    file.seek(size - _END.size)
    mark, disk, first, here, count, length, begin, comment = _END.unpack(file.read(_END.size))
    if mark != b"PK\x05\x06" or comment:
        raise _DamageError("it does not end with its end record; truncated?")
    end = size - _END.size
    if end >= _END64.size + _LOCATOR.size:
        file.seek(end - _LOCATOR.size - _END64.size)
        record, locator = _END64.unpack(file.read(_END64.size)), _LOCATOR.unpack(file.read(_LOCATOR.size))
        if locator[0] == b"PK\x06\x07":
            end -= _LOCATOR.size + _END64.size
            if locator[1:] != (0, end, 1) or record[:2] != (b"PK\x06\x06", _END64.size - 12):
                raise _DamageError("its two end records differ")
            long, short = record[4:], (disk, first, here, count, length, begin)
            tops = (_TOP16,) * 4 + (_TOP32,) * 2
            if any(few not in (many, top) for few, many, top in zip(short, long, tops, strict=True)):
                raise _DamageError("its two end records differ")
            disk, first, here, count, length, begin = long
    if (disk, first, here) != (0, 0, count) or begin + length != end:
        raise _DamageError("its directory does not end at its end record")
    return begin, end, count


def _listed(directory: bytes) -> Iterator[tuple[str, int, int, Member]]:
    """Name, flags, offset of the local header, and the member with no offset yet."""
    place = 0
    while place < len(directory):
        fields = _ENTRY.unpack_from(directory, place)
        mark, flags, method, crc, packed, size = *fields[:1], *fields[3:5], *fields[7:10]
        name_size, extra_size, comment_size, disk, offset = *fields[10:14], fields[16]
        place += _ENTRY.size
        raw, extra = directory[place : place + name_size], directory[place + name_size :][:extra_size]
        place += name_size + extra_size + comment_size
        if mark != b"PK\x01\x02" or disk or comment_size or place > len(directory):
            raise _DamageError("its directory is damaged")
        if flags & _ENCRYPTED or method not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise _DamageError("a member is encrypted, or compressed in another way than torch's")
        size, packed, offset = _long(extra, (size, packed, offset))
        if (method == zipfile.ZIP_STORED and packed != size) or (method != zipfile.ZIP_STORED and size > _INFLATED):
            raise _DamageError(f"a member of {size:,} bytes in {packed:,}")
        try:
            name = raw.decode()
        except UnicodeDecodeError:
            raise _DamageError("the name of a member is not UTF-8") from None
        yield name, flags, offset, Member(0, packed, size, crc, method)


def _long(extra: bytes, short: tuple[int, int, int]) -> tuple[int, int, int]:
    """Size, packed size and offset, those that need 64 bits from the extra field."""
    if _TOP32 not in short:
        return short
    while len(extra) >= 4:
        kind, length = struct.unpack_from("<2H", extra)
        body, extra = extra[4 : 4 + length], extra[4 + length :]
        if kind == 1:
            numbers = iter(struct.unpack(f"<{short.count(_TOP32)}Q", body))
            size, packed, offset = (next(numbers) if value == _TOP32 else value for value in short)
            return size, packed, offset
    raise _DamageError("a size is missing")


def _start(file: IO[bytes], offset: int, name: str, flags: int, member: Member) -> int:
    """Where the data of a member begin; its own header must say what the directory says."""
    file.seek(offset)
    mark, _, own_flags, method, _, _, crc, packed, size, name_size, extra_size = _LOCAL.unpack(file.read(_LOCAL.size))
    if mark != b"PK\x03\x04" or file.read(name_size) != name.encode() or (own_flags, method) != (flags, member.method):
        raise _DamageError(f"the header of {name[:80]!r} is not what the directory says")
    later = bool(flags & _DESCRIPTOR_FOLLOWS) and not (crc or packed or size)
    fits = crc == member.crc and packed in (member.packed, _TOP32) and size in (member.size, _TOP32)
    if not later and not fits:
        raise _DamageError(f"the header of {name[:80]!r} is not what the directory says")
    return offset + int(_LOCAL.size) + int(name_size) + int(extra_size)


def _checked(file: IO[bytes], member: Member) -> Iterator[bytes]:
    """The content of a member in parts; its end is an error where size or checksum do not fit."""
    crc = size = 0
    for chunk in _content(file, member):
        crc, size = zlib.crc32(chunk, crc), size + len(chunk)
        yield chunk
    if (crc, size) != (member.crc, member.size):
        raise _DamageError("a checksum is wrong")


def _content(file: IO[bytes], member: Member) -> Iterator[bytes]:
    file.seek(member.offset)
    if member.method == zipfile.ZIP_DEFLATED:
        unpack = zlib.decompressobj(-zlib.MAX_WBITS)
        yield unpack.decompress(file.read(member.packed), member.size + 1)
        return
    left = member.packed
    while left > 0:
        chunk = file.read(min(left, _CHUNK))
        if not chunk:
            return
        left -= len(chunk)
        yield chunk
