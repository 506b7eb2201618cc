"""The rows of a split, where the device can reach them: kept on it, or streamed to it through pinned memory."""

from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

import torch
from torch import Tensor

from ...core.environment import free_memory
from .row_order import Window

if TYPE_CHECKING:
    from .gather_kernel import Programs

WINDOW_BYTES = 64 * 2**20
# What a step, its graph and the scoring need beside the features.
RESERVED = 4 * 2**30


class DeviceRows(Protocol):
    """Features ``(N, D)`` and labels ``(N,)`` of one split.

    Attributes:
        features: As they were given, on the CPU or on the device.
        labels: On the device.
        placement: Where the features are, in words.
    """

    features: Tensor
    labels: Tensor
    placement: str

    def windows(self, plan: Iterable[Window]) -> Iterator[tuple[Window, Tensor, Tensor]]:
        """Load windows one after the other.

        Yields:
            The window, and buffers with its features ``(R, D)`` and labels ``(R,)`` on the device, which hold them
            until the next one is asked for. Equal windows come in at most two pairs of buffers.
        """

    def blocks(self, size: int, rank: int = 0, ranks: int = 1) -> Iterator[tuple[Tensor, Tensor]]:
        """All rows in their order, or each ``ranks``-th from the ``rank``-th on, in blocks on the device."""


def place(
    features: Tensor,
    labels: Tensor,
    device: torch.device,
    memory: int | None,
    processes: int = 1,
    reserved: int = RESERVED,
) -> DeviceRows:
    """Choose where the rows of a split live.

    Args:
        features: ``(N, D)`` float16 or float32 on the CPU, mapped from a file or in memory.
        labels: ``(N,)`` int64 on the CPU.
        device: Where they are needed.
        memory: Bytes that features may take on a CUDA device; None is what is free, less ``reserved``.
        processes: How many processes on this machine do the same.
        reserved: Bytes to leave free.

    Returns:
        Rows on the device if they fit; otherwise rows that stream to it, from page-locked memory if they take at most
        half of what is free, from where they are if they take more. On a CPU they stay where they are.
    """
    needed = features.numel() * features.element_size()
    if device.type == "cpu":
        return _InMemory(features, labels, f"where they were, not copied: {needed / 1e9:.2f} GB of features")
    free = torch.cuda.mem_get_info(device)[0] - reserved if memory is None else memory
    sizes = f"{needed / 1e9:.2f} GB of features, {max(free, 0) / 1e9:.2f} GB allowed on the device"
    from .gather_kernel import FROM_DEVICE, FROM_HOST, page_locked

    if needed <= free:
        return _Fetched(_copied(features, device), labels, device, f"on the device: {sizes}", FROM_DEVICE)
    if needed * processes <= free_memory() / 2:
        locked = page_locked(features)
        if locked is not None:
            where = f"read by the device from page-locked memory: {sizes}"
            return _Fetched(locked, labels, device, where, FROM_HOST)
    return _Streamed(features, labels, device, f"streamed to the device: {sizes}")


class _InMemory:
    """Rows on the CPU, for a CPU."""

    def __init__(self, features: Tensor, labels: Tensor, placement: str) -> None:
        self.features, self.labels, self.placement = features, labels, placement
        self._buffers: tuple[Tensor, Tensor] | None = None

    def windows(self, plan: Iterable[Window]) -> Iterator[tuple[Window, Tensor, Tensor]]:
        for window in plan:
            features, labels = self._buffer(len(window.rows))
            torch.index_select(self.features, 0, window.rows, out=features)
            torch.index_select(self.labels, 0, window.rows, out=labels)
            yield window, features, labels

    def blocks(self, size: int, rank: int = 0, ranks: int = 1) -> Iterator[tuple[Tensor, Tensor]]:
        yield from zip(self.features[rank::ranks].split(size), self.labels[rank::ranks].split(size), strict=True)

    def _buffer(self, rows: int) -> tuple[Tensor, Tensor]:
        """The one pair of buffers, cut to ``rows`` rows; the first window of an epoch is the largest."""
        if self._buffers is None or len(self._buffers[1]) < rows:
            self._buffers = (self.features.new_empty(rows, self.features.shape[1]), self.labels.new_empty(rows))
        return self._buffers[0][:rows], self._buffers[1][:rows]


class _Streamed:
    """Rows that stay on the CPU; the next window comes to the device while it works on this one."""

    def __init__(self, features: Tensor, labels: Tensor, device: torch.device, placement: str) -> None:
        self.features, self.placement = features, placement
        self.labels = labels.to(device)
        self._stream = torch.cuda.Stream(device)
        self._slots: list[_Slot] = []

    def windows(self, plan: Iterable[Window]) -> Iterator[tuple[Window, Tensor, Tensor]]:
        with ThreadPoolExecutor(1) as sender:
            waiting = None
            for number, window in enumerate(plan):
                slot = self._slot(number % 2, len(window.rows))
                coming = (window, slot, sender.submit(self._send, window.rows, slot))
                if waiting is not None:
                    yield self._arrived(*waiting)
                    waiting[1].consumed.record()
                waiting = coming
            if waiting is not None:
                yield self._arrived(*waiting)
                waiting[1].consumed.record()

    def blocks(self, size: int, rank: int = 0, ranks: int = 1) -> Iterator[tuple[Tensor, Tensor]]:
        labels = self.labels[rank::ranks].split(size)
        for features, own in zip(self.features[rank::ranks].split(size), labels, strict=True):
            yield features.to(own.device), own

    def _slot(self, number: int, rows: int) -> "_Slot":
        if len(self._slots) <= number:
            self._slots.append(_Slot(self.features, self.labels, rows))
        return self._slots[number]

    def _send(self, rows: Tensor, slot: "_Slot") -> None:
        """Gather rows into pinned memory and start their copy to the device."""
        slot.arrived.synchronize()
        pinned = torch.index_select(self.features, 0, rows, out=slot.pinned[: len(rows)])
        with torch.cuda.stream(self._stream):
            self._stream.wait_event(slot.consumed)
            features, labels = slot.of(len(rows))
            features.copy_(pinned, non_blocking=True)
            torch.index_select(self.labels, 0, rows.to(self.labels.device, non_blocking=True), out=labels)
            slot.arrived.record(self._stream)

    def _arrived(self, window: Window, slot: "_Slot", sending: Future[None]) -> tuple[Window, Tensor, Tensor]:
        sending.result()
        torch.cuda.current_stream().wait_event(slot.arrived)
        return window, *slot.of(len(window.rows))


class _Fetched(_Streamed):
    """Rows on the device or in page-locked memory, where the device gathers the next window while it works on this one.

    Args:
        features: ``(N, D)``, there.
        labels: ``(N,)``.
        device: Which.
        placement: Where, in words.
        programs: Who gather them; see `fetch_rows`.
    """

    def __init__(
        self, features: Tensor, labels: Tensor, device: torch.device, placement: str, programs: "Programs"
    ) -> None:
        super().__init__(features, labels, device, placement)
        self._programs = programs

    def _send(self, rows: Tensor, slot: "_Slot") -> None:
        from .gather_kernel import fetch_rows

        with torch.cuda.stream(self._stream):
            self._stream.wait_event(slot.consumed)
            wanted = rows.to(self.labels.device, non_blocking=True)
            fetch_rows(self.features, self.labels, wanted, slot.of(len(rows)), self._programs)
            slot.arrived.record(self._stream)


class _Slot:
    """A buffer on the device, and the events between those who fill and who read it."""

    def __init__(self, features: Tensor, labels: Tensor, rows: int) -> None:
        self.features = torch.empty(rows, features.shape[1], dtype=features.dtype, device=labels.device)
        self.labels = labels.new_empty(rows)
        self.arrived, self.consumed = torch.cuda.Event(), torch.cuda.Event()
        self.consumed.record()  # by whatever had this memory before

    def of(self, rows: int) -> tuple[Tensor, Tensor]:
        """The first rows of both."""
        return self.features[:rows], self.labels[:rows]

    @cached_property
    def pinned(self) -> Tensor:
        """As large a buffer in page-locked memory."""
        return torch.empty(self.features.shape, dtype=self.features.dtype, pin_memory=True)


def _copied(features: Tensor, device: torch.device) -> Tensor:
    """Features on the device, copied block by block so that pages of a mapped file come and go."""
    copy = torch.empty(features.shape, dtype=features.dtype, device=device)
    rows = max(WINDOW_BYTES // max(features.element_size() * features.shape[1], 1), 1)
    for target, block in zip(copy.split(rows), features.split(rows), strict=True):
        target.copy_(block)
    return copy
