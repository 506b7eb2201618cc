import errno
from contextlib import contextmanager

import pytest
import torch
from safetensors.torch import save_file

from headsmith.core.errors import InputError
from headsmith.models import Linear, load_head, save_head


def test_starts_from_zeros_and_is_affine():
    head = Linear(3, 2)
    assert head(torch.randn(4, 3)).abs().max() == 0
    head.weight.data = torch.tensor([[1.0, 2.0, 3.0], [0.0, 0.0, 1.0]])
    head.bias.data = torch.tensor([0.5, -1.0])
    assert head(torch.tensor([[1.0, 1.0, 2.0]])).tolist() == [[9.5, 1.0]]


def test_round_trip(tmp_path):
    head = Linear(5, 7)
    torch.nn.init.normal_(head.weight)
    save_head(head, tmp_path / "head.safetensors")
    loaded = load_head(tmp_path / "head.safetensors")
    assert torch.equal(loaded.weight, head.weight)
    assert (loaded.in_features, loaded.num_classes, loaded.training) == (5, 7, False)


def test_every_kind_comes_back(random_head, tmp_path):
    head = random_head()
    save_head(head, tmp_path / "head.safetensors")
    loaded = load_head(tmp_path / "head.safetensors")
    assert (loaded.kind, loaded.options, loaded.bank) == (head.kind, head.options, None)
    for name, part in head.state_dict().items():
        assert torch.equal(loaded.state_dict()[name], part.float())


def test_a_bank_is_not_saved(tmp_path):
    with pytest.raises(ValueError, match="save its members"):
        save_head(Linear(3, 2, bank=2), tmp_path / "head.safetensors")
    assert not list(tmp_path.iterdir())


def test_a_head_without_options_of_an_earlier_version(tmp_path):
    metadata = {"headsmith.head": '{"kind": "linear", "in_features": 3, "num_classes": 2}'}
    save_file({"weight": torch.ones(2, 3), "bias": torch.zeros(2)}, tmp_path / "head.safetensors", metadata)
    assert load_head(tmp_path / "head.safetensors").weight.sum() == 6


def test_equal_heads_are_equal_files(tmp_path):
    for name in "abcdefgh":
        save_head(Linear(3, 2), tmp_path / name)
    assert len({(tmp_path / name).read_bytes() for name in "abcdefgh"}) == 1


@contextmanager
def files_of_at_most(size):
    """A system that writes no more than this, as a full disk does."""
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_what_the_system_refuses_to_write_is_its_own_error(tmp_path):
    with pytest.raises(OSError, match="File too large") as error, files_of_at_most(100):
        save_head(Linear(64, 10), tmp_path / "head.safetensors")
    assert error.value.errno == errno.EFBIG
    assert not list(tmp_path.iterdir())


def test_a_slice_is_not_saved_with_its_whole_storage(tmp_path):
    head = Linear(64, 10)
    head.weight.data = torch.randn(10_000, 64)[:10]
    save_head(head, tmp_path / "head.safetensors")
    assert (tmp_path / "head.safetensors").stat().st_size < 2 * 10 * 65 * 4


def test_files_that_hold_no_head(tmp_path):
    path = tmp_path / "head.safetensors"
    with pytest.raises(InputError, match="head.safetensors: not found"):
        load_head(path)
    save_file({"weight": torch.zeros(2, 3)}, path)
    with pytest.raises(InputError, match="not a head of headsmith's"):
        load_head(path)
    metadata = {"headsmith.head": '{"kind": "linear", "in_features": 3, "num_classes": 4}'}
    save_file({"weight": torch.zeros(2, 3), "bias": torch.zeros(2)}, path, metadata)
    with pytest.raises(InputError, match="do not fit a linear head"):
        load_head(path)
    save_head(Linear(3, 2), path)
    path.write_bytes(path.read_bytes()[:-4])
    with pytest.raises(InputError, match="damaged"):
        load_head(path)
