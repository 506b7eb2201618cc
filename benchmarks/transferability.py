"""How well cheap scores on 300 rows predict the order of backbones, beside the accuracy of a probe on all rows.

python -m benchmarks.transferability

In place of backbones whose weights need a network stand the stages of lite0 at two image sizes, random networks, and
pixels: 20 feature sets of each of two sets of images.
"""

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import timm
import torch
from PIL import Image
from rich.console import Console
from rich.table import Table
from scipy.stats import spearmanr
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch import Tensor, nn

from headsmith.demo.glyphs import draw_glyphs
from headsmith.metrics.transferability import promise
from headsmith.models import load_backbone

Array = np.ndarray[Any, Any]
IMAGES, ROWS, CLASSES = 900, 300, 60


def image_sets() -> Iterator[tuple[str, Tensor, Array]]:
    digits = load_digits()
    yield (
        "digits",
        torch.tensor(digits.images / 8 - 1, dtype=torch.float32)[:, None].expand(-1, 3, -1, -1),
        digits.target,
    )
    with tempfile.TemporaryDirectory() as folder:
        files = sorted(draw_glyphs(Path(folder) / "glyphs", classes=CLASSES).rglob("*.png"))
        drawn = [np.asarray(Image.open(file).convert("RGB").resize((64, 64)), np.float32) for file in files]
    _, labels = np.unique([file.parent.name for file in files], return_inverse=True)
    yield "glyphs", torch.from_numpy(np.stack(drawn) / 127.5 - 1).permute(0, 3, 1, 2), labels


@torch.inference_mode()
def stages(network: Any, images: Tensor, size: int) -> Iterator[Array]:
    """The mean over the pixels of each stage's output, and the features."""
    taken: list[list[Tensor]] = [[] for _ in network.blocks]
    hooks = [
        block.register_forward_hook(lambda block, given, found, to=to: to.append(found.mean((2, 3))))
        for block, to in zip(network.blocks, taken, strict=True)
    ]
    features = []
    for batch in images.split(100):
        sized = nn.functional.interpolate(batch, size=(size, size), mode="bilinear")
        features.append(network.forward_head(network.forward_features(sized), pre_logits=True))
    for hook in hooks:
        hook.remove()
    yield from (torch.cat(one).numpy() for one in (*taken, features))


def feature_sets(images: Tensor) -> Iterator[Array]:
    network = load_backbone("lite0").network
    torch.manual_seed(0)
    random = timm.create_model("tf_efficientnet_lite0").eval()
    yield from stages(network, images, 48)
    yield from stages(network, images, 80)
    yield from list(stages(random, images, 64))[2::2][:3]
    yield nn.functional.interpolate(images, size=(8, 8), mode="area").mean(1).flatten(1).numpy()


def logistic(features: Array, labels: Array) -> float:
    """Logistic regression in three folds."""
    scaled = StandardScaler().fit_transform(features.astype(np.float64)) / np.sqrt(features.shape[1])
    folds = StratifiedKFold(3, shuffle=True, random_state=0)
    return float(cross_val_score(LogisticRegression(C=100, max_iter=300), scaled, labels, cv=folds).mean())


def logme(features: Array, labels: Array) -> float:
    """LogME (You et al., ICML 2021): the log evidence of a Bayesian linear regression on each class, per row."""
    rows = StandardScaler().fit_transform(features.astype(np.float64))
    left, singular, _ = np.linalg.svd(rows, full_matrices=False)
    return float(np.mean([_evidence(left, singular**2, rows.shape, labels == one) for one in np.unique(labels)]))


def _evidence(left: Array, values: Array, shape: tuple[int, int], target: Array) -> float:
    (n, width), along = shape, left.T @ target
    outside = target.sum() - along @ along
    alpha = beta = 1.0
    for _ in range(50):
        shrunk = alpha + beta * values
        norm = float((beta**2 * values * along**2 / shrunk**2).sum())
        error = float((alpha**2 * along**2 / shrunk**2).sum() + outside)
        effective = float((beta * values / shrunk).sum())
        alpha, beta = effective / (norm + 1e-12), (n - effective) / (error + 1e-12)
    shrunk = alpha + beta * values
    norm, error = (beta**2 * values * along**2 / shrunk**2).sum(), (alpha**2 * along**2 / shrunk**2).sum() + outside
    volume = np.log(shrunk).sum() + (width - len(values)) * np.log(alpha)
    fit = n * np.log(beta) + width * np.log(alpha) - n * np.log(2 * np.pi) - beta * error - alpha * norm - volume
    return float(fit / 2 / n)


SCORES = {"promise (ridge, leave one out)": promise, "logistic regression, three folds": logistic, "LogME": logme}


def main() -> None:
    table = Table("images", "score", "rank correlation", "lost by the first", "ms a backbone")
    for name, images, labels in image_sets():
        order = np.random.default_rng(0).permutation(len(labels))[:IMAGES]
        found, labels = list(feature_sets(images[order])), labels[order]
        half = IMAGES // 2
        probe = make_pipeline(StandardScaler(), LogisticRegression(C=0.1, max_iter=100))
        final = np.array([probe.fit(x[:half], labels[:half]).score(x[half:], labels[half:]) for x in found])
        for score, function in SCORES.items():
            start = time.perf_counter()
            values = np.array([function(x[:ROWS], labels[:ROWS]) for x in found])
            seconds = (time.perf_counter() - start) / len(found)
            lost = 100 * (final.max() - final[values.argmax()])
            table.add_row(name, score, f"{spearmanr(final, values)[0]:.2f}", f"{lost:.1f} %", f"{1000 * seconds:.0f}")
    Console().print(table)


if __name__ == "__main__":
    main()
