"""Every row once an epoch, whatever the batch, the window and the number of processes."""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from headsmith.trainer.fitting.row_order import row_order, windows

seeds = st.integers(0, 2**63 - 1)


@settings(deadline=None)
@given(st.integers(1, 60), seeds, st.integers(1, 5))
def test_an_order_holds_each_row_once_and_is_known_from_seed_and_epoch(rows, seed, epoch):
    labels = torch.zeros(rows, dtype=torch.int64)
    order = row_order(labels, seed, epoch, balanced=False)
    assert order.sort().values.equal(torch.arange(rows))
    assert order.equal(row_order(labels, seed, epoch, balanced=False))


def test_epochs_and_seeds_differ():
    labels = torch.zeros(100, dtype=torch.int64)
    orders = [row_order(labels, seed, epoch, balanced=False) for seed in (0, 1) for epoch in (1, 2)]
    assert all(not a.equal(b) for n, a in enumerate(orders) for b in orders[:n])


@settings(deadline=None)
@given(st.lists(st.integers(1, 40), min_size=2, max_size=5), seeds)
def test_balanced_draws_only_rows_that_are_there(counts, seed):
    labels = torch.arange(len(counts)).repeat_interleave(torch.tensor(counts))
    order = row_order(labels, seed, 1, balanced=True)
    assert len(order) == len(labels)
    assert 0 <= order.min() <= order.max() < len(labels)


def test_balanced_draws_every_class_equally_often_and_its_rows_too():
    labels = torch.tensor([0] * 5000 + [2] * 40 + [3] * 960)
    drawn = row_order(labels, 0, 1, balanced=True)
    shares = labels[drawn].bincount(minlength=4) / len(drawn)
    torch.testing.assert_close(shares, torch.tensor([1 / 3, 0, 1 / 3, 1 / 3]), atol=0.03, rtol=0)
    rare = drawn[labels[drawn] == 2].bincount()[5000:]
    assert rare.min() > 0.5 * rare.float().mean()


@settings(deadline=None)
@given(st.integers(1, 50), st.integers(1, 20), st.integers(1, 4), st.integers(1, 4))
def test_processes_share_each_batch_and_lose_nothing(rows, batch, steps, ranks):
    order = torch.randperm(rows)
    shares = [windows(order, batch, steps, 7, rank, ranks) for rank in range(ranks)]
    step = 0
    for together in zip(*shares, strict=True):
        parts = [window.rows.split(window.sizes) for window in together]
        for position, total in enumerate(together[0].totals):
            expected = order[step * batch : (step + 1) * batch]
            found = torch.cat([part[position] for part in parts])
            assert total == len(expected)
            assert found.sort().values.equal(expected.sort().values)
            assert max(len(part[position]) for part in parts) - min(len(part[position]) for part in parts) <= 1
            assert together[0].first_step + position == 7 + step
            step += 1
    assert step == -(-rows // batch)
