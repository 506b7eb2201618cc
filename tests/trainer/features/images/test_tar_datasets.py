"""Tars of images in the layout of WebDataset: what is read, and what is refused in one line."""

import io
import re
import tarfile

import pytest
from datasets_folders import PNG, refused

from headsmith.core.errors import InputError
from headsmith.trainer.features import open_images

pytestmark = pytest.mark.usefixtures("own_cache")


def archive(path, *members, format="w", **changes):
    with tarfile.open(path, format) as file:
        for name, content in members:
            info = tarfile.TarInfo(name)
            info.size = len(content)
            for key, value in changes.items():
                setattr(info, key, value)
            file.addfile(info, io.BytesIO(content))


def samples(*endings):
    """A sample for each of them, with a label and an image of that ending, or several."""
    images = [(f"{row}.{end}", PNG) for row, kinds in enumerate(endings) for end in kinds.split()]
    return sorted(images + [(f"{row}.cls", b"01"[row % 2 :][:1]) for row in range(len(endings))])


def test_a_tar_of_images_and_labels(tmp_path):
    (tmp_path / "shop").mkdir()
    members = [(f"{row}.{end}", one) for row in range(6) for end, one in (("png", PNG), ("cls", b"01"[row % 2 :][:1]))]
    archive(tmp_path / "shop" / "test.tar", *members)
    found = open_images(tmp_path / "shop", splits=False)
    assert found.source.label_column == "cls"  # not __key__ and __url__, which the reader adds
    assert len(found) == 6 and found.read(0).size == (8, 8)


@pytest.mark.parametrize(
    ("pair", "taken"),
    [(("jpg", "png"), "jpg"), (("jpg", "thumb.png"), "thumb.png"), (("left.PNG", "right.PNG"), "right.PNG")],
)
def test_a_tar_of_two_images_a_sample(tmp_path, pair, taken):
    (tmp_path / "shop").mkdir()
    archive(tmp_path / "shop" / "test.tar", *samples(*[" ".join(pair)] * 6))
    first = re.escape(pair[0])
    with pytest.raises(
        InputError, match=rf"shop: 2 image columns \({re.escape(', '.join(pair))}\), .*`image_column` {first}$"
    ):
        open_images(tmp_path / "shop", splits=False)
    found = open_images(tmp_path / "shop", image_column=taken, splits=False)
    assert found.source.image_column == taken and found.read(0).size == (8, 8)


@pytest.mark.parametrize(
    ("endings", "said"),
    [
        (["jpg", "png"] * 3, "sample '1' has .png, but '0' has .jpg, expected images of the same endings"),
        (["jpg"] * 7 + ["png"], "sample '7' has .png, but '0' has .jpg"),
        (["jpg png", "png"] * 3, "sample '1' has .png, but '0' has .jpg .png"),
        (["jpg", ""] * 3, "sample '1' has no image, but '0' has .jpg"),
        (["jpg", "JPG"] * 3, "sample '1' has .JPG, but '0' has .jpg"),
    ],
)
@pytest.mark.parametrize("files", [1, 2])
def test_a_tar_whose_samples_have_other_images(tmp_path, endings, said, files):
    """They would be columns with gaps; also where they stand in another file, or after the five that are looked at."""
    (tmp_path / "shop").mkdir()
    members = samples(*endings)
    if files == 1:
        archive(tmp_path / "shop" / "test.tar", *members)
    else:
        first = endings.index(endings[0])
        alike = [row for row, kind in enumerate(endings) if kind == endings[first]]
        for name, chosen in (("test-0.TAR", True), ("test-1.tar", False)):
            rows = [one for one in members if (int(one[0].partition(".")[0]) in alike) == chosen]
            archive(tmp_path / "shop" / name, *rows)
        said = said.replace("'0' has", "'0' in test-0.TAR has")
    refused(tmp_path / "shop", re.escape(said))


@pytest.mark.parametrize("name", ["test.TAR", "test.Tar"])
def test_a_file_whose_suffix_is_in_capitals_is_checked_too(tmp_path, name):
    (tmp_path / "shop").mkdir()
    archive(tmp_path / "shop" / name, ("0.png", PNG), ("0.npy", b"x"))
    with pytest.raises(InputError, match=r"holds '0\.npy', expected images and labels"):
        open_images(tmp_path / "shop", image_column="png", splits=False)


@pytest.mark.parametrize(
    ("members", "changes", "match"),
    [
        ([("0.png", PNG), ("0.npy", b"x")], {}, r"holds '0\.npy', expected images and labels"),
        ([("0.png", PNG), ("0.pth", b"x")], {}, r"holds '0\.pth', expected images"),
        ([("0.png.gz", PNG)], {}, r"holds '0\.png\.gz', expected images"),
        ([("0.png", PNG)], {"type": tarfile.GNUTYPE_SPARSE}, "truncated, damaged|more than it has"),
        ([("0.png", PNG)], {"format": "w:gz"}, r"truncated, damaged or not \.tar"),
    ],
)
def test_a_tar_that_holds_more(tmp_path, members, changes, match):
    (tmp_path / "shop").mkdir()
    archive(tmp_path / "shop" / "test.tar", *members, **changes)
    refused(tmp_path / "shop", rf"test\.tar: .*({match})|{match}")


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("cls", b"hello", "'hello' found, expected a whole number; correct it or take its sample out"),
        ("id", b"", "'' found, expected a whole number"),
        ("inx", b"1.5", "'1.5' found, expected a whole number"),
        ("json", b"{", "'{' found, expected JSON"),
        ("json", b'{"a": NaN, }', "found, expected JSON"),
        ("txt", b"\xff\xfe", "found, expected text in UTF-8"),
    ],
)
def test_a_label_in_a_tar_that_cannot_be_read_is_named(tmp_path, name, content, reason):
    (tmp_path / "shop").mkdir()
    members = [(f"{row}.{end}", one) for row in range(6) for end, one in (("png", PNG), ("cls", b"%d" % (row % 2)))]
    archive(tmp_path / "shop" / "test.tar", *members, ("z.png", PNG), (f"z.{name}", content))
    refused(tmp_path / "shop", rf"test\.tar: z\.{name}: .*{re.escape(reason)}")


@pytest.mark.parametrize("kind", ["between members", "half an end", "a header overwritten", "two archives"])
def test_a_tar_that_was_cut_between_its_members(tmp_path, kind):
    """Readers of tar stop without a word where no header is (POSIX.1-2017, pax: two blocks of zeros end an archive)."""
    (tmp_path / "shop").mkdir()
    path = tmp_path / "shop" / "test.tar"
    members = [(f"{row}.{end}", one) for row in range(6) for end, one in (("png", PNG), ("cls", b"01"[row % 2 :][:1]))]
    archive(path, *members)
    content, pair = path.read_bytes(), 4 * 512  # header and image, header and label
    assert len(PNG) <= 512
    path.write_bytes(
        {
            "between members": content[: 4 * pair],
            "half an end": content[: 6 * pair + 512],
            "a header overwritten": content[: 3 * pair] + b"A" * 512 + content[3 * pair + 512 :],
            "two archives": content + content,
        }[kind]
    )
    with tarfile.open(path) as file:
        assert len(file.getnames()) == {"between members": 8, "a header overwritten": 6}.get(kind, 12)
    refused(tmp_path / "shop", r"test\.tar: no end after \d+ files, expected zeros from byte")


def test_a_tar_with_a_hole_of_a_terabyte(tmp_path):
    (tmp_path / "shop").mkdir()
    info = tarfile.TarInfo("0.png")
    info.pax_headers = {"GNU.sparse.major": "0", "GNU.sparse.map": f"0,1,{1 << 40},0", "GNU.sparse.size": str(1 << 40)}
    with tarfile.open(tmp_path / "shop" / "test.tar", "w", format=tarfile.PAX_FORMAT) as file:
        info.size = 1
        file.addfile(info, io.BytesIO(b"x"))
    with tarfile.open(tmp_path / "shop" / "test.tar") as file:
        assert file.getmembers()[0].size == 1 << 40  # it is an attack
    refused(tmp_path / "shop", r"test\.tar: states 1,099,511,627,776 bytes")
