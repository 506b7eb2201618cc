"""The training loop: Adam, early stopping on validation, the best epoch kept, the test split scored once."""

import copy
import json
import time
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from ..models.errors import InputError
from ..models.heads import Head, build_head
from .accuracy import label_ranks
from .config import TrainConfig
from .features.feature_set import FeatureSet
from .losses import TopKCrossEntropy
from .progress import progress

EVALUATION_ROWS = 8192


class _Split:
    """The rows of one split, on the device."""

    def __init__(self, feature_set: FeatureSet, name: str, device: torch.device) -> None:
        features, labels = feature_set.arrays(name)
        self.features = features.to(device)
        self.labels = labels.to(device)

    def __len__(self) -> int:
        return len(self.labels)


class Training:
    """The state of a run while it goes on.

    Attributes:
        best_head: The head of the best epoch so far.
        best: That epoch's row of the metrics.
        test: The test split's scores, once training is over.
        seconds: What training took, validation included.
    """

    def __init__(self, feature_set: FeatureSet, config: TrainConfig, criterion: TopKCrossEntropy) -> None:
        self.config = config
        self.device = torch.device(config.device)
        self.splits = {name: _Split(feature_set, name, self.device) for name in ("train", "val", "test")}
        self.criterion = criterion.to(self.device)
        self.head = build_head(config.head, feature_set.feature_dim, len(feature_set.class_names)).to(self.device)
        self.optimizer = torch.optim.Adam(self.head.parameters(), lr=config.step_size)
        self.order = torch.Generator().manual_seed(config.seed)
        self.best_head: Head = copy.deepcopy(self.head)
        self.best: dict[str, Any] = {}
        self.seconds = 0.0
        self.test: dict[str, Any] = {}

    def run(self, metrics: Path) -> None:
        """Train until the validation accuracy stops rising, then score the test split."""
        start = time.perf_counter()
        title, epochs = f"Training {self.config.loss}", self.config.epochs
        with metrics.open("w", encoding="utf-8") as log, progress(title, epochs, "epochs") as advance:
            for epoch in range(1, self.config.epochs + 1):
                row = self._epoch(epoch) | {"seconds": round(time.perf_counter() - start, 3)}
                log.write(json.dumps(row) + "\n")
                advance(1, f"loss {row['loss']:.4f}  val top-1 {row['val']['top1']:.1%}")
                if self._improves(row):
                    self.best, self.best_head = row, copy.deepcopy(self.head)
                elif epoch - self.best["epoch"] >= self.config.patience:
                    break
        self.seconds = time.perf_counter() - start
        self.test = self._score("test", self.best_head)

    def _epoch(self, epoch: int) -> dict[str, Any]:
        rows = self.splits["train"]
        order = torch.randperm(len(rows), generator=self.order).to(self.device)
        total = torch.zeros((), device=self.device)
        for batch in order.split(self.config.batch_size):
            loss = self.criterion(self.head(rows.features[batch].float()), rows.labels[batch])
            self.optimizer.zero_grad(set_to_none=True)
            loss.backward()
            self.optimizer.step()
            total += loss.detach() * len(batch)
        mean = float(total) / len(rows)
        if not torch.isfinite(total):
            raise InputError(
                f"training {self.config.loss}: the loss is {mean} in epoch {epoch}; "
                f"lower --learning-rate (now {self.config.learning_rate})"
            )
        return {"epoch": epoch, "loss": mean, "val": self._score("val", self.head)}

    @torch.inference_mode()
    def _score(self, name: str, head: nn.Module) -> dict[str, Any]:
        """Loss, top-k accuracies (as shares) and the selection score of a split."""
        rows = self.splits[name]
        losses, ranks = [], []
        for features, labels in zip(
            rows.features.split(EVALUATION_ROWS), rows.labels.split(EVALUATION_ROWS), strict=True
        ):
            logits = head(features.float())
            losses.append(self.criterion(logits, labels) * len(labels))
            ranks.append(label_ranks(logits, labels))
        rank = torch.cat(ranks).cpu()
        score = sum(weight * _share(rank, k) for k, weight in enumerate(self.config.p_k or (), start=1))
        return {
            "n": len(rows),
            "loss": float(torch.stack(losses).sum()) / len(rows),
            "top1": _share(rank, 1),
            "top5": _share(rank, 5) if self.head.num_classes >= 5 else None,
            "score": score,
        }

    def _improves(self, row: dict[str, Any]) -> bool:
        return not self.best or _merit(row) > _merit(self.best)


def _merit(row: dict[str, Any]) -> tuple[float, float]:
    return row["val"]["score"], -row["val"]["loss"]


def _share(rank: Tensor, k: int) -> float:
    return float((rank < k).double().mean())
