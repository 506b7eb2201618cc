"""safetensors files that are the same bytes whenever their content is."""

import json


def in_order(content: bytes) -> bytes:
    """A safetensors file with its metadata in the order of their keys; as it is saved, chance decides."""
    end = 8 + int.from_bytes(content[:8], "little")
    header = json.loads(content[8:end])
    header["__metadata__"] = dict(sorted(header["__metadata__"].items()))
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text + content[end:]
