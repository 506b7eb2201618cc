"""Processes that are forked from one that has imported everything: a new interpreter takes seconds for it."""

import multiprocessing
import sys
from collections.abc import Callable
from pathlib import Path

PATIENCE = 300  # seconds, for a process that hangs
# Packages of ours import nothing before their first use, so that the modules themselves are named.
IMPORTED = [
    "pytest",
    "timm",
    "headsmith.cli.app",
    "headsmith.models.backbone",
    "headsmith.trainer.features.extraction.extraction",
    "headsmith.trainer.training",
]


def forked() -> multiprocessing.context.ForkServerContext:
    """Where such processes are made."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(IMPORTED)
    return context


def start(work: Callable[..., object], *arguments: object, printed: Path) -> multiprocessing.process.BaseProcess:
    """Let a process do ``work``; what it prints goes to a file."""
    process = forked().Process(target=redirected, args=(printed, work, arguments))
    process.start()
    return process


def end(process: multiprocessing.process.BaseProcess) -> int:
    """Wait for its end: the exit status."""
    process.join(PATIENCE)
    process.kill()
    process.join()
    return process.exitcode


def run_command(*arguments: str) -> None:
    """``headsmith`` with arguments."""
    from headsmith.cli import app

    app(arguments, prog_name="headsmith")


def redirected(printed: Path, work: Callable[..., object], arguments: tuple[object, ...]) -> None:
    """Do ``work`` on one thread; what it prints goes to a file."""
    import torch

    torch.set_num_threads(1)
    with printed.open("w") as file:
        sys.stdout = sys.stderr = file
        work(*arguments)
