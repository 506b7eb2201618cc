"""What an evaluation is asked for: every option with its default, its help and its choices."""

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..core.count_limits import check_at_once
from ..core.errors import InputError
from ..core.settings import check_choices, setting
from ..models.execution_provider import ExecutionProvider, providers_of
from .held_out_record import HeldOutSource

KS, TORCH = (1, 5), "torch"


def numbers(text: Any) -> tuple[int, ...]:
    """``1,5`` as numbers; a default comes as numbers already.

    Raises:
        InputError: It is none.
    """
    if not isinstance(text, str):
        return tuple(text)
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        raise InputError(f"{text!r} found, expected whole numbers such as 1,5") from None


@dataclass(frozen=True)
class EvaluationOptions:
    """The options of one evaluation; see `evaluate_classifiers`, whose keywords they are.

    Raises:
        InputError: A value that means nothing.
    """

    data: str | Path = setting(
        dataclasses.MISSING,
        "Held-out images: class folders, or a `datasets` name or path; a folder of images with --truth; for heads "
        "alone a feature set.",
    )
    truth: str | Path | None = setting(
        None,
        "Right classes of images without class folders: a CSV file (file name, class), a line an image, or ReaL's "
        "real.json.",
    )
    class_ids: str | Path | None = setting(
        None, "What numbered classes are: a file of `id name` lines, the devkit's meta.mat, imagenet-1k."
    )
    group_column: str | None = setting(
        None, "Column of --truth, or of a `datasets` source, with the group of an image."
    )
    image_column: str | None = setting(None, "Image column of a `datasets` source.")
    label_column: str | None = setting(None, "Label column of a `datasets` source.")
    preprocessing: str | Path | None = setting(
        None, "YAML file with the recipe of an ONNX file that does not say it itself."
    )
    labels: str | Path | None = setting(
        None, "Classes of ONNX files that do not say them: a text file, or a set such as imagenet-1k."
    )
    background: int | None = setting(None, "The output of such files that is no class.")
    output: str | None = setting(None, "The output of such files with the scores.")
    checkpoint: str | Path | None = setting(None, "Local weights of a timm: or torchvision: network.")
    k: tuple[int, ...] = setting(KS, "Top-k for these k, and top-1.", parser=numbers, metavar="K,K,...")
    provider: tuple[ExecutionProvider, ...] = setting(
        ("cpu",),
        "onnxruntime's execution providers, a row for each: cpu, cuda, tensorrt, openvino, ... as this onnxruntime has "
        "them, or YAML files with their options. They run, or it is an error.",
    )
    allow_fallback: bool = setting(False, "Let the CPU run nodes that the provider cannot; they are counted.")
    batch_size: int = setting(64, "Images a run of the session.")
    threads: int | None = setting(
        None, "onnxruntime's threads; at most 64, or the machine's cores.", left_out="the cores this process may use"
    )
    speed: bool = setting(False, "Time longer, and at batch sizes 1 to 256.")
    against: str | None = setting(None, "torch: run every classifier there too, and count flips.", values=(TORCH,))
    save_logits: bool = setting(False, "Keep all logits too.")
    strict: bool = setting(False, "Stop at the first unreadable image instead of reporting it.")

    def __post_init__(self) -> None:
        object.__setattr__(self, "provider", providers_of(self.provider))
        check_choices(self)
        check_at_once("--batch-size", self.batch_size)
        if (least := min(self.k, default=0)) < 1:
            raise InputError(f"--k: {least} found, expected at least 1")
        object.__setattr__(self, "k", tuple(sorted({1, *self.k})))

    @property
    def source(self) -> HeldOutSource:
        """Where the held-out set lies."""
        return HeldOutSource(
            str(self.data),
            None if self.truth is None else str(self.truth),
            None if self.class_ids is None else str(self.class_ids),
            self.group_column,
            self.image_column,
            self.label_column,
        )

    @property
    def files(self) -> dict[str, Any]:
        """What has to be said of files of others, as `find_candidates` takes it."""
        names = ("preprocessing", "labels", "background", "output", "checkpoint")
        return {name: getattr(self, name) for name in names}
