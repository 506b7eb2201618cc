"""``data.json``: the held-out set of a results folder."""

from dataclasses import dataclass
from pathlib import Path

from ..core.coded_warnings import CodedWarning, of_texts
from ..core.files import read_json, write_json
from ..core.json_values import JsonObject
from ..core.records import HASHES, check_hashes, to_json, with_hashes
from ..core.typed_json import structured
from ..trainer.features.images.samples import ImageColumns

ADVICE = "damaged, or of another version: evaluate again into another folder"


@dataclass(frozen=True)
class HeldOutSource:
    """Where a held-out set lies, paths as they were given; `headsmith.evaluate.open_held_out.open_data` opens it.

    Attributes:
        data: A folder of class folders, all of which are held out; a source with a test split; a `datasets` name; a
            folder of images, with ``truth``; or a feature set.
        truth: See `headsmith.evaluate.truth_file.labelled_by`.
        class_ids: What numbered classes are called: see `headsmith.evaluate.truth_file.class_names_of`.
        group_column: Column of ``truth``, or of a `datasets` source, with a group for each image.
        image_column: Image column of a `datasets` source.
        label_column: Label column of a `datasets` source.
        part: Take the test split that an undivided source got when a head was trained on it; with the images that
            followed their copies into another split, see ``together`` of `open_images`.
    """

    data: str
    truth: str | None = None
    class_ids: str | None = None
    group_column: str | None = None
    image_column: str | None = None
    label_column: str | None = None
    part: bool | dict[str, str] = False

    @property
    def columns(self) -> ImageColumns:
        """The columns of a `datasets` source, as `open_images` takes them."""
        return {"image_column": self.image_column, "label_column": self.label_column}


@dataclass(frozen=True)
class HeldOutRecord:
    """The held-out set of a results folder.

    Attributes:
        name: Where it comes from, as it was given.
        fingerprint: SHA-256 of classes, ids, labels and contents.
        class_names: Its classes, in its order; the first labels of every result.
        n: Inputs, unreadable ones among them.
        source: How it is opened again.
        warnings: What was found while it was opened, such as images without a label.
    """

    name: str
    fingerprint: str
    class_names: list[str]
    n: int
    source: HeldOutSource
    warnings: list[CodedWarning]

    @classmethod
    def read(cls, path: Path) -> "HeldOutRecord":
        """Read ``data.json``.

        Raises:
            InputError: No such file, or no such record in it.
            DamagedFileError: A field was edited, or the hashes by which that is found are missing.
        """
        values = read_json(path)
        own = {name: value for name, value in values.items() if name != HASHES}
        found = structured(_upgraded(own), cls, str(path), advice=ADVICE)
        if not _is_older(values):
            check_hashes(values, str(path), writer="the evaluation", advice="evaluate again into another folder")
        return found

    def write(self, path: Path) -> None:
        """Write ``data.json``, with the hashes of its fields."""
        write_json(path, with_hashes(to_json(self)))


def _is_older(values: JsonObject) -> bool:
    """Whether a file is of the version before, whose warnings were ``notes`` and whose fields had no hashes."""
    return isinstance(values.get("notes"), list)


def _upgraded(values: JsonObject) -> JsonObject:
    """The values of any version as those of this one: warnings were ``notes`` without codes."""
    if not _is_older(values):
        return values
    return {name: value for name, value in values.items() if name != "notes"} | {"warnings": of_texts(values["notes"])}
