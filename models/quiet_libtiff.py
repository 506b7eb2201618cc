"""What libtiff says of damaged files, which Pillow lets it write to the process' standard error."""

import ctypes
from contextlib import suppress

import PIL._imaging


def silence_libtiff() -> None:
    """Switch off the error handler of the libtiff that Pillow is linked with: why an image fails, Pillow raises.

    "A NULL (0) error handling function may be installed to suppress error messages" (libtiff's manual, TIFFError); so
    Pillow itself does with warnings. Where the function is not found, as with a libtiff inside Pillow, messages stay.
    """
    with suppress(AttributeError, OSError):
        set_handler = ctypes.CDLL(PIL._imaging.__file__).TIFFSetErrorHandler
        set_handler.argtypes, set_handler.restype = [ctypes.c_void_p], ctypes.c_void_p
        set_handler(None)
