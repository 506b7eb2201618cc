"""A zip file in which Python's zipfile and torch's reader find different members."""

import io
import struct
import zipfile


def archive_of(members):
    with io.BytesIO() as file:
        with zipfile.ZipFile(file, "w") as archive:
            for name, content in members.items():
                archive.writestr(name, content)
        return file.getvalue()


def two_faced(shown, hidden):
    """The bytes of an archive: zipfile finds the members ``shown``, torch the members ``hidden``.

    The end record states the offset of the hidden directory. Python takes the directory just before the record and
    moves all offsets by the difference.
    """
    shown, hidden = dict(shown), {"a/extra/first": bytes(len(archive_of(shown))), **hidden}
    for fewer in (shown, hidden):
        for number in range(max(len(shown), len(hidden)) - len(fewer)):
            fewer[f"a/extra/fill{number}"] = b""
    more = len(directory(archive_of(shown))) - len(directory(archive_of(hidden)))
    shown["a/extra/" + "x" * 2000] = hidden["a/extra/" + "x" * (2000 + more)] = b""
    front, back = archive_of(shown), archive_of(hidden)
    listed, secret = directory(front), directory(back)
    assert len(listed) == len(secret)
    data = body(back) + secret + body(front)
    moved = len(body(front)) + len(secret)
    listed = shifted(listed, len(body(back)) + len(secret) - moved)
    record = struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, len(shown), len(shown), len(listed), len(body(back)), 0)
    return data + listed + record


def directory(data):
    return data[struct.unpack_from("<L", data, len(data) - 6)[0] : -22]


def body(data):
    return data[: struct.unpack_from("<L", data, len(data) - 6)[0]]


def shifted(entries, by):
    changed, place = bytearray(entries), 0
    while place < len(entries):
        name, extra, comment = struct.unpack_from("<3H", entries, place + 28)
        struct.pack_into("<L", changed, place + 42, struct.unpack_from("<L", entries, place + 42)[0] + by)
        place += 46 + name + extra + comment
    return bytes(changed)
