"""The operators of onnxruntime-extensions, which some files need."""

from types import ModuleType

from ...core.errors import InputError

DOMAIN = "com.microsoft.extensions"
INSTALL = "pip install 'headsmith[encoded]'"


def extensions() -> ModuleType:
    """The package of the operators.

    Raises:
        InputError: It is not installed.
    """
    try:
        import onnxruntime_extensions
    except ImportError:
        raise InputError(f"--input encoded: onnxruntime-extensions is not installed; {INSTALL}") from None
    module: ModuleType = onnxruntime_extensions
    return module
