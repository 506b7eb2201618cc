"""Settings files: YAML, read safely."""

import re
from pathlib import Path
from typing import Any

import yaml

from .errors import InputError

_EXPONENT = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)[eE][-+]?\d+$")


class _Loader(yaml.SafeLoader):
    """YAML 1.1 with the numbers of 1.2 (1e-3 is one), and without keys that stand there twice."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        twice = [key for place, key in enumerate(keys) if key in keys[:place]]
        if twice:
            raise yaml.constructor.ConstructorError(None, None, f"{twice[0]!r} is set twice", node.start_mark)
        return super().construct_mapping(node, deep)


_Loader.add_implicit_resolver("tag:yaml.org,2002:float", _EXPONENT, list("-+0123456789."))


def read_yaml(path: str | Path) -> Any:
    """What a YAML file holds.

    Raises:
        InputError: The file is missing, is not YAML, or sets a key twice.
    """
    try:
        return yaml.load(Path(path).read_text(encoding="utf-8"), _Loader)  # noqa: S506 - a safe loader
    except FileNotFoundError:
        raise InputError(f"{path}: not found") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: not valid YAML ({' '.join(str(error).split())})") from None
