from collections.abc import Callable

import pytest

from headsmith.evaluate.zoo import Candidate, Failed, find_candidates


@pytest.fixture(scope="session")
def only() -> Callable[..., Candidate | Failed]:
    """A function: one source and what is said of it, to what is found."""

    def find(source: object, **said: object) -> Candidate | Failed:
        (found,) = find_candidates([source], **said)
        return found

    return find


@pytest.fixture
def labels_file(tmp_path: object) -> Callable[[int], object]:
    """A function: a number of classes, to a file with that many names."""

    def make(count: int) -> object:
        path = tmp_path / f"{count}.txt"
        path.write_text("".join(f"class {index}\n" for index in range(count)))
        return path

    return make
