"""Counts in sentences."""


def counted(count: int, one: str, many: str = "") -> str:
    """A count with the words that go with it: ``1 image has``, ``1,024 images have``.

    Args:
        count: How many.
        one: What one is called, with its verb where the sentence has one.
        many: The same of any other number; by default with an ``s``.
    """
    return f"{count:,} {one if count == 1 else many or f'{one}s'}"
