"""TorchScript archives whose bytes depend on nothing but the network, and that tell nothing of the machine."""

import re
import zipfile
from pathlib import Path
from typing import IO

import torch

# A number that counts the classes of this process.
_MANGLED = re.compile(rb"___torch_mangle_\d+")


def write_archive(saved: IO[bytes], path: Path) -> None:
    """Write what `torch.jit.save` saved, its members in the order of their names.

    Left out are the places in Python that it was traced from (``.debug_pkl``), which only a stack trace would show.
    Class names lose their counter; it stands in code and in opcodes that end with the line, so that no length changes.

    Args:
        saved: The archive of one frozen module, which is one class.
        path: Where to write. The name of the folder inside is that of the file.
    """
    with zipfile.ZipFile(saved) as archive:
        members = {name.partition("/")[2]: archive.read(name) for name in archive.namelist()}
    writer = torch._C.PyTorchFileWriter(str(path))
    # torch writes the number elsewhere where an operator asks for a later one, as GELU does
    writer.set_min_version(int(members[".data/version" if ".data/version" in members else "version"]))
    for name in sorted(members):
        if name == "version" or name.startswith(".data/") or name.endswith(".debug_pkl"):
            continue  # the first two the writer writes itself
        content = members[name]
        if name == "data.pkl" or name.startswith("code/"):
            content = _MANGLED.sub(b"___torch_mangle_0", content)
        writer.write_record(_MANGLED.sub(b"___torch_mangle_0", name.encode()).decode(), content, len(content))
    writer.write_end_of_file()
