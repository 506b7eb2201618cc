"""TorchScript that runs code when it is opened, writes files when it is run, or lies about its tensors."""

import json
import re
import struct
import warnings
import zipfile

import numpy as np
import pytest
import torch
from two_faces import archive_of, two_faced

from headsmith.core.errors import InputError
from headsmith.export import Classifier, file_info, open_model
from headsmith.export.formats.torchscript_format import write_torchscript
from headsmith.export.metadata import Metadata, identity
from headsmith.models import Linear

ABOUT = Metadata(tuple("abcdef"), "features", None, identity(None, 8), "feature set")
REFUSED = "which no module of `headsmith export` does and which could run code or write files"
pytestmark = pytest.mark.filterwarnings("ignore:.*torch.jit")


@pytest.fixture(scope="module")
def members(tmp_path_factory):
    path = tmp_path_factory.mktemp("ts") / "a.ts"
    write_torchscript(Classifier(Linear(8, 6)), ABOUT, path)
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


@pytest.fixture
def marker(tmp_path):
    return tmp_path / "marker"


def refused(path, marker, match):
    for reader in (open_model, file_info):
        with pytest.raises(InputError, match=match) as error:
            reader(path)
        assert "\n" not in str(error.value) and str(path) in str(error.value) and not marker.exists()


def written(tmp_path, members, **changes):
    path = tmp_path / "model.ts"
    path.write_bytes(archive_of(members | {name.replace("_pkl", ".pkl"): value for name, value in changes.items()}))
    return path


def saved(module, members, path):
    """A module of our own making, with the metadata of a sound file."""
    extra = {name.rpartition("/")[2]: content for name, content in members.items() if "/extra/" in name}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.jit.save(module, str(path), _extra_files=extra)
    return path


def answers(logits):
    return logits, logits, logits.long()


class SavesWhenRun(torch.nn.Module):
    def __init__(self, path):
        super().__init__()
        self.path = path

    def forward(self, x):
        torch.save(x, self.path)
        return x[:, :6], x[:, :6], x[:, :6].long()


class MapsWhenRun(SavesWhenRun):
    def forward(self, x):
        mapped = torch.from_file(self.path, True, 8, dtype=torch.uint8)
        x = x + mapped.fill_(65).sum()
        return x[:, :6], x[:, :6], x[:, :6].long()


class PrintsWhenRun(SavesWhenRun):
    def forward(self, x):
        print(x)  # noqa: T201 - what is refused
        return x[:, :6], x[:, :6], x[:, :6].long()


class NeverEnds(SavesWhenRun):
    def forward(self, x):
        while bool(x.sum() >= 0):
            x = x + 1
        return x[:, :6], x[:, :6], x[:, :6].long()


class SavesWhenOpened(torch.nn.Module):
    def __init__(self, path):
        super().__init__()
        self.path = path

    @torch.jit.export
    def __getstate__(self):
        return self.path, self.training

    @torch.jit.export
    def __setstate__(self, state: tuple[str, bool]):
        self.path = state[0]
        self.training = state[1]
        torch.save(state[0], self.path)

    def forward(self, x):
        return x[:, :6], x[:, :6], x[:, :6].long()


@pytest.mark.parametrize("frozen", [False, True])
@pytest.mark.parametrize("kind", [SavesWhenRun, MapsWhenRun, PrintsWhenRun, NeverEnds])
def test_what_could_write_when_it_is_run_is_not_opened(members, marker, tmp_path, kind, frozen):
    module = torch.jit.script(kind(str(marker)).eval())
    module = torch.jit.freeze(module) if frozen else module
    path = saved(module, members, tmp_path / "model.ts")
    if kind in (SavesWhenRun, MapsWhenRun):
        torch.jit.load(path)(torch.zeros(3, 8))
        assert marker.exists()  # it is an attack
        marker.unlink()
    refused(path, marker, REFUSED)


def test_what_writes_when_it_is_opened_is_not_opened(members, marker, tmp_path):
    module = torch.jit.script(SavesWhenOpened(str(marker)))
    path = saved(module, members, tmp_path / "model.ts")
    torch.jit.load(path)
    assert marker.exists()  # it is an attack
    marker.unlink()
    refused(path, marker, REFUSED)


def test_a_second_directory_is_not_what_torch_reads(members, marker, tmp_path):
    path = saved(torch.jit.script(SavesWhenOpened(str(marker))), members, tmp_path / "a.ts")
    with zipfile.ZipFile(path) as archive:
        hidden = {name: archive.read(name) for name in archive.namelist()}
    (tmp_path / "model.ts").write_bytes(two_faced(members, hidden))
    refused(tmp_path / "model.ts", marker, "does not end at its end record")


def code_of(members):
    (name,) = (name for name in members if name.endswith(".py"))
    return name, members[name].decode()


@pytest.mark.parametrize(
    "line",
    [
        '    torch.save(inputs, "{}")',
        '    _9 = ops.aten.save(inputs, "{}")',
        '    _9 = torch.from_file("{}", True, 8, dtype=0)',
        '    _9 = ops.image.write_file("{}", inputs)',
        '    ops.prim.Print("{}")',
        "    _9 = torch.rand_like(inputs)  # {}",
        '    _9 = torch.load("{}")',
        '    torch.warn("{}")',
        "    _9 = uninitialized(Tensor)\n    def g(x: Tensor) -> Tensor:\n      return x",
    ],
)
def test_code_written_by_hand_is_read_before_it_is_run(members, marker, tmp_path, line):
    name, code = code_of(members)
    code = re.sub(r"(-> [^\n]*:\n)", lambda found: found[1] + line.format(marker) + "\n", code, count=1)
    path = written(tmp_path, members, **{name: code.encode()})
    refused(path, marker, rf"{REFUSED}|damaged or not TorchScript")


@pytest.mark.parametrize("method", ["__setstate__", "helper", "forward2"])
def test_another_method_is_refused(members, marker, tmp_path, method):
    name, code = code_of(members)
    path = written(tmp_path, members, **{name: f"{code}  def {method}(self, x: int) -> int:\n    return x\n".encode()})
    refused(path, marker, "holds another method than forward")


@pytest.mark.parametrize(
    "pickled",
    [
        b"\x80\x02cposix\nsystem\nX\x05\x00\x00\x00touch\x85R.",
        b"\x80\x02c__torch__.torch.classes.dist_rpc\nWorkerInfo\n)\x81.",
        b"\x80\x02(I1\nt.",
        b"",
    ],
)
def test_pickles_of_other_things_are_refused(members, marker, tmp_path, pickled):
    for part in ("a/data.pkl", "a/constants.pkl"):
        refused(written(tmp_path, members, **{part: pickled}), marker, rf"{REFUSED}|damaged or not TorchScript")


def test_a_tensor_may_not_reach_beyond_its_storage(members, marker, tmp_path):
    """torch would answer with whatever lies behind it in memory, or die."""
    pickled = members["a/constants.pkl"]
    weight = b"K0tQ" if b"K0tQ" in pickled else None
    assert weight  # 48 entries: 6 x 8
    for wrong in (b"J" + struct.pack("<i", 1 << 30) + b"tQ", b"J" + struct.pack("<i", -1) + b"tQ", b"K\x07tQ"):
        refused(
            written(tmp_path, members, **{"a/constants.pkl": pickled.replace(weight, wrong)}), marker, "storage|with"
        )
    larger = pickled.replace(b"(K\x06K\x08t", b"(K\x7fK\x7ft")
    assert larger != pickled
    refused(written(tmp_path, members, **{"a/constants.pkl": larger}), marker, "_rebuild_tensor_v2 with")


@pytest.mark.parametrize("place", [b"q\xff", b"r" + struct.pack("<I", 2), b"r" + struct.pack("<I", 1 << 31)])
def test_a_place_in_the_memo_that_is_not_the_next_one_is_refused(members, marker, tmp_path, place):
    """torch makes its memo as long as the place that is stated: 2^31 places are 34 GB."""
    pickled = members["a/constants.pkl"]
    assert pickled.count(b"q\x01") == 1
    wrong = pickled.replace(b"q\x01", place)
    refused(written(tmp_path, members, **{"a/constants.pkl": wrong}), marker, "BINPUT .* in constants.pkl")


def test_a_flipped_bit_in_a_weight_is_found(members, marker, tmp_path):
    path = written(tmp_path, members)
    data = bytearray(path.read_bytes())
    data[data.index(members["a/constants/0"][:16]) + 5] ^= 1 if any(members["a/constants/0"]) else 4
    path.write_bytes(bytes(data))
    refused(path, marker, "a checksum is wrong")


def test_the_sound_file_is_opened(members, tmp_path):
    found = open_model(written(tmp_path, members)).run(np.ones((3, 8), np.float32))
    assert found.logits.shape == (3, 6)
    assert json.loads(members["a/extra/labels"]) == list("abcdef")
