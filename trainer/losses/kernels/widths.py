"""How many candidates the kernels take."""

from ...loss_options import LossOptions

MOST_CANDIDATES = 128
_OF_ALL_CLASSES = ("lapsum",)


def of_all_classes(method: str, m: int, classes: int) -> bool:
    """Whether a kernel of its own takes the row whole: every class is a candidate, and they are too many to select."""
    return method in _OF_ALL_CLASSES and m >= classes > MOST_CANDIDATES


def row_is_whole(options: LossOptions, classes: int) -> bool:
    """The same for these options."""
    return of_all_classes(options.method, options.candidates(classes), classes)
