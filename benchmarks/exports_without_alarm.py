"""How often the proof of a sound export fails: 200 random heads over all formats. None may.

Heads are of every kind, of odd sizes, with large and small logits and with classes that tie; features alone for most,
behind a small network for the rest. `--count N` makes fewer. For each format stands too how much of the difference that
is allowed its worst export used: what `FACTOR` in `export/parity/allowed_difference.py` has in hand.
"""

import argparse
import itertools
import logging
import tempfile
import time
import warnings
from collections import Counter
from pathlib import Path

import numpy as np
import timm
import torch

from headsmith.core.errors import HeadsmithError
from headsmith.export import Classifier, open_model
from headsmith.export.formats.registry import FORMATS
from headsmith.export.held_out import Batch
from headsmith.export.metadata import Metadata, identity
from headsmith.export.options import FEATURES, FLOAT_NCHW, ExportOptions
from headsmith.export.parity.proof_at_export import prove
from headsmith.export.parity.python_module import PythonModule
from headsmith.models import build_head, load_backbone

KINDS = ("linear", "norm_linear", "cosine", "mlp")
CLASSES, WIDTHS = (1, 2, 3, 5, 6, 17, 101), (1, 3, 8, 65, 200)
SCALES = (1e-3, 1.0, 30.0, 1e3)


class MadeUpInputs:
    """Labelled inputs."""

    unreadable = ()

    def __init__(self, inputs, labels):
        self.inputs, self.labels = inputs, labels

    def __len__(self):
        return len(self.inputs)

    def batches(self, size):
        """In order."""
        for start in range(0, len(self), size):
            rows = slice(start, start + size)
            yield Batch(self.inputs[rows], self.labels[rows], [str(row) for row in range(len(self))[rows]])


def random_head(random, kind, width, classes, scale, ties):
    head = build_head(kind, width, classes, **({"hidden": 16} if kind == "mlp" else {}))
    features = (random.normal(size=(300, width)) * random.choice([0.1, 1, 20], size=width) + 1).astype(np.float32)
    if kind == "norm_linear":
        head.fit_normalization(torch.from_numpy(features)) if hasattr(head, "fit_normalization") else None
    with torch.no_grad():
        for name, parameter in head.named_parameters():
            parameter.copy_(torch.from_numpy(random.normal(size=parameter.shape).astype(np.float32)))
            if name in head.class_parameters:
                parameter.mul_(scale)
                if ties and classes > 1:
                    parameter[-1] = parameter[0]
    return head, features


def network():
    torch.manual_seed(0)
    path = Path(tempfile.mkdtemp(), "tiny.pth")
    torch.save(timm.create_model("test_resnet").state_dict(), path)
    return load_backbone("timm:test_resnet", checkpoint=path, image_size=32)


def exported(folder, number, backbone):
    """Write a head in one format and prove it: what was made, and the share used of the difference that is allowed."""
    random = np.random.default_rng(number)
    torch.manual_seed(number)
    kind, ties = KINDS[number % 4], number % 3 == 0
    classes, scale = int(random.choice(CLASSES)), float(random.choice(SCALES))
    format = ("onnx", "torchscript", "pt2", "triton")[(number // 4) % 4]
    if number % 20 == 7:
        format, kind = "timm", "linear"
    whole = format == "timm" or number % 40 == 0
    width = backbone.feature_dim if whole else int(random.choice(WIDTHS))
    head, inputs = random_head(random, kind, width, classes, scale, ties)
    if whole:
        inputs = random.integers(0, 256, (20, 32, 32, 3), dtype=np.uint8)
    module = Classifier(head, backbone if whole else None)
    about = Metadata(
        tuple(f"class {index}" for index in range(classes)),
        FLOAT_NCHW if whole else FEATURES,
        backbone.preprocessing if whole else None,
        identity(backbone.record() if whole else None, width),
        "features",
        head=kind,
    )
    path = folder / str(number) / FORMATS[format].named("b")
    path.parent.mkdir(parents=True)
    FORMATS[format].write(module.folded(), about, path, ExportOptions())
    held_out = MadeUpInputs(inputs, random.integers(0, classes, len(inputs)))
    models = {path.name: open_model(path, threads=1)}
    [proof] = prove(PythonModule(module, about), models, held_out, ExportOptions()).files.values()
    return format, kind, proof.parity.worst / (proof.parity.allowed_difference or 1)


def false_alarms(numbers):
    """Prove exports by number: how many of each format and kind, the largest share used by format, what failed."""
    backbone, counts, used, failed = network(), Counter(), {}, []
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for number in numbers:
            try:
                format, kind, share = exported(Path(folder), number, backbone)
                counts.update((format, kind))
                used[format] = max(share, used.get(format, 0.0))
            except HeadsmithError as error:
                failed.append(f"{number}: {error}")
    return counts, used, failed


def _percent(share):
    return "" if share is None else f"{share:6.0%} of the allowed difference at most"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=200)
    count = parser.parse_args().count
    logging.disable(logging.WARNING)
    start = time.perf_counter()
    counts, used, failed = false_alarms(itertools.islice(itertools.count(), count))
    print("\n".join(f"{name:14} {found:4} {_percent(used.get(name))}" for name, found in sorted(counts.items())))
    print("\n".join(failed))
    print(f"{len(failed)} of {count} sound exports failed, {time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
