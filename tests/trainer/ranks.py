"""Processes that are started as torchrun starts them, but forked from one that has imported everything."""

import multiprocessing
import os
import sys
from collections.abc import Callable
from pathlib import Path

import torch
from torch.distributed import TCPStore

PATIENCE = 300  # seconds, for a process that hangs


def forked() -> multiprocessing.context.ForkServerContext:
    """Where processes begin with the trainer imported."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["headsmith.cli", "headsmith.trainer"])
    return context


def run_ranks(count: int, work: Callable[..., object], *arguments: object, folder: Path) -> list[tuple[int, str]]:
    """Let each of ``count`` ranks do ``work``: the exit status of each, and what it printed."""
    store = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)  # torchrun has one too
    files = [folder / f"rank{rank}.txt" for rank in range(count)]
    processes = [
        forked().Process(target=_as_rank, args=(rank, count, store.port, files[rank], work, arguments))
        for rank in range(count)
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join(PATIENCE)
        process.kill()
        process.join()
    return [(process.exitcode, file.read_text()) for process, file in zip(processes, files, strict=True)]


def _as_rank(rank: int, count: int, port: int, file: Path, work: Callable[..., object], arguments: tuple) -> None:
    os.environ |= {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(count), "LOCAL_WORLD_SIZE": str(count)}
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    os.environ |= {
        "TORCHELASTIC_USE_AGENT_STORE": "True",
        "TORCHELASTIC_RESTART_COUNT": "0",
        "TORCHELASTIC_RUN_ID": "1",
    }
    torch.set_num_threads(1)
    with file.open("w") as printed:
        sys.stdout = sys.stderr = printed
        work(*arguments)


def run_command(*arguments: str) -> None:
    """``headsmith`` with arguments."""
    from headsmith.cli import app

    app(arguments, prog_name="headsmith")
