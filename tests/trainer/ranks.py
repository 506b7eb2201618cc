"""Processes that are started as torchrun starts them."""

import os
from collections.abc import Callable
from pathlib import Path

from forked import end, redirected, start
from torch.distributed import TCPStore
from torch.distributed.launcher.api import LaunchConfig, elastic_launch


def run_ranks(count: int, work: Callable[..., object], *arguments: object, folder: Path) -> list[tuple[int, str]]:
    """Let each of ``count`` ranks do ``work``: the exit status of each, and what it printed."""
    store = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)  # torchrun has one too
    files = [folder / f"rank{rank}.txt" for rank in range(count)]
    processes = [
        start(_as_rank, rank, count, store.port, work, arguments, printed=file) for rank, file in enumerate(files)
    ]
    statuses = [end(process) for process in processes]
    return [(status, file.read_text()) for status, file in zip(statuses, files, strict=True)]


def _as_rank(rank: int, count: int, port: int, work: Callable[..., object], arguments: tuple[object, ...]) -> None:
    os.environ |= {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(count), "LOCAL_WORLD_SIZE": str(count)}
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    os.environ |= {
        "TORCHELASTIC_USE_AGENT_STORE": "True",
        "TORCHELASTIC_RESTART_COUNT": "0",
        "TORCHELASTIC_RUN_ID": "1",
    }
    work(*arguments)


def torchrun(count: int, work: Callable[..., object], *arguments: object, folder: Path) -> list[tuple[int, str]]:
    """The same by torchrun's own agent: one status and what all printed."""
    file = folder / "torchrun.txt"
    status = end(start(_as_torchrun, count, folder, work, arguments, printed=file))
    files = [file, *(folder / f"rank{rank}.txt" for rank in range(count))]
    return [(status, "".join(file.read_text() for file in files))]


def _as_torchrun(count: int, folder: Path, work: Callable[..., object], arguments: tuple[object, ...]) -> None:
    config = LaunchConfig(1, 1, count, rdzv_backend="c10d", rdzv_endpoint="localhost:0", start_method="forkserver")
    elastic_launch(config, _to_file)(folder, work, arguments)


def _to_file(folder: Path, work: Callable[..., object], arguments: tuple[object, ...]) -> None:
    try:
        redirected(folder / f"rank{os.environ['RANK']}.txt", work, arguments)
    except SystemExit as done:  # the agent knows a worker's end by what it returns or raises
        assert not done.code
