"""A scikit-learn classifier over the trainer."""

import dataclasses
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.model_selection import train_test_split
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from ..models.errors import InputError
from .config import TrainConfig
from .fitting import fit_heads

_ROWS = 8192


class HeadClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A head on features, with scikit-learn's interface: cross-entropy, or a differentiable top-k cross-entropy.

    Parameters that `headsmith.trainer.TrainConfig` has are its settings, with its defaults.

    Args:
        loss: ``softmax``, or a relaxation: ``neuralsort``, ``softsort``, ``sinkhorn``, ``odd_even``, ``bitonic``,
            ``splitter_selection``.
        p_k: Weights of top-1, top-2, ... ``None`` is top-1 for ``softmax``; for the others half top-1 and half top-5,
            or half top-(C-1) where there are fewer than six classes, since all C are always right.
        m: Highest scores of a row that enter the relaxation.
        inverse_temperature: Sharpness of the relaxation; ``None`` takes the loss's.
        distribution: Of a sorting network's comparators.
        art_lambda: The lambda of the distribution ``logistic_phi``.
        top1_mode: How top-1 enters: ``sm``, ``smce`` or ``sort``.
        softmax_over: What its softmax runs over: ``candidates`` or ``classes``.
        label_smoothing: Share of the cross-entropy with uniform targets.
        head: ``linear``, ``norm_linear``, ``cosine`` or ``mlp``.
        norm: What ``norm_linear`` does first: ``standard`` or ``layer``.
        hidden: Units in the hidden layer of ``mlp``.
        optimizer: ``adam``, ``adamw``, ``sgd`` or ``lbfgs``.
        learning_rate: Its step size; ``None`` takes the loss's.
        weight_decay: L2 penalty, or decay for ``adamw``.
        momentum: Of ``sgd``.
        warmup: Epochs over which the step size rises linearly from 0.
        schedule: ``constant`` or ``cosine``.
        dropout: Share of a feature's entries that are set to 0 in training.
        noise: Deviation of Gaussian noise on features in training, in units of their root mean square.
        balanced: Draw the rows of every class equally often.
        averaging: Decay a step of an exponential moving average of the weights, which is kept; 0 is off.
        epochs: Passes over the rows, at the most; ``None`` is 100, or as many as make 3,000 steps.
        batch_size: Rows a step; more than there are is all of them.
        device: ``auto``, ``cpu`` or ``cuda``.
        early_stopping: Hold ``validation_fraction`` of the rows out, class by class, keep the epoch with the highest
            accuracy on them (weighted by ``p_k``), and stop after ``patience`` epochs without a better one. Otherwise
            all rows train, and the last epoch is kept.
        validation_fraction: Share of the rows that is held out.
        patience: Epochs without a better validation accuracy; ``None`` is 10, or as many as make 300 steps.
        random_state: Fixes the order of the rows, what is drawn, and what is held out.

    Attributes:
        classes_: ``(C,)`` the classes, sorted.
        n_features_in_: D.
        head_: The fitted head, a `torch.nn.Module` on the CPU.
        config_: Its settings, every default filled in.
        history_: The metrics of every epoch.
        n_iter_: Epochs that ran.
    """

    def __init__(
        self,
        *,
        loss: str = TrainConfig.loss,
        p_k: Sequence[float] | None = TrainConfig.p_k,
        m: int | None = TrainConfig.m,
        inverse_temperature: float | None = TrainConfig.inverse_temperature,
        distribution: str = TrainConfig.distribution,
        art_lambda: float = TrainConfig.art_lambda,
        top1_mode: str = TrainConfig.top1_mode,
        softmax_over: str = TrainConfig.softmax_over,
        label_smoothing: float = TrainConfig.label_smoothing,
        head: str = TrainConfig.head,
        norm: str = TrainConfig.norm,
        hidden: int = TrainConfig.hidden,
        optimizer: str = TrainConfig.optimizer,
        learning_rate: float | None = TrainConfig.learning_rate,
        weight_decay: float = TrainConfig.weight_decay,
        momentum: float = TrainConfig.momentum,
        warmup: float = TrainConfig.warmup,
        schedule: str = TrainConfig.schedule,
        dropout: float = TrainConfig.dropout,
        noise: float = TrainConfig.noise,
        balanced: bool = TrainConfig.balanced,
        averaging: float = TrainConfig.averaging,
        epochs: int | None = TrainConfig.epochs,
        batch_size: int = TrainConfig.batch_size,
        device: str = TrainConfig.device,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        patience: int | None = TrainConfig.patience,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.loss = loss
        self.p_k = p_k
        self.m = m
        self.inverse_temperature = inverse_temperature
        self.distribution = distribution
        self.art_lambda = art_lambda
        self.top1_mode = top1_mode
        self.softmax_over = softmax_over
        self.label_smoothing = label_smoothing
        self.head = head
        self.norm = norm
        self.hidden = hidden
        self.optimizer = optimizer
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.momentum = momentum
        self.warmup = warmup
        self.schedule = schedule
        self.dropout = dropout
        self.noise = noise
        self.balanced = balanced
        self.averaging = averaging
        self.epochs = epochs
        self.batch_size = batch_size
        self.device = device
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.patience = patience
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Fit the head.

        Args:
            X: ``(N, D)`` features.
            y: ``(N,)`` classes, of any kind that scikit-learn takes.

        Raises:
            InputError: Settings that do not fit the data, a single class, or a loss that becomes infinite or NaN.
        """
        features, targets = validate_data(self, X, y, dtype=[np.float32, np.float64])
        check_classification_targets(targets)
        self.classes_, labels = np.unique(targets, return_inverse=True)
        if len(self.classes_) < 2:
            raise InputError(f"y holds one class, {self.classes_.tolist()[0]!r}, expected at least 2")
        random = check_random_state(self.random_state)
        fitted = fit_heads(self._rows(features, labels, random), len(self.classes_), [self._config(random)])[0]
        if fitted.diverged:
            raise InputError(f"loss became infinite or NaN; lower learning_rate (now {fitted.config.step_size:g})")
        self.head_, self.config_, self.history_ = fitted.head, fitted.config, fitted.history
        self.n_iter_ = len(fitted.history)
        return self

    def _rows(self, X: NDArray[Any], labels: NDArray[Any], random: np.random.RandomState) -> dict[str, Any]:
        parts = {"train": np.arange(len(labels))}
        if self.early_stopping:
            held_out = {"test_size": self.validation_fraction, "stratify": labels, "random_state": random}
            parts["train"], parts["val"] = train_test_split(parts["train"], **held_out)
        return {
            name: (torch.from_numpy(_float32(X[rows])), torch.from_numpy(labels[rows].astype(np.int64)))
            for name, rows in parts.items()
        }

    def _config(self, random: np.random.RandomState) -> TrainConfig:
        own = {name: getattr(self, name) for name in _SHARED}
        seed = int(random.randint(2**31 - 1))
        return TrainConfig(**own | {"p_k": None if self.p_k is None else tuple(self.p_k), "seed": seed})

    def _logits(self, X: ArrayLike) -> NDArray[np.float64]:
        """Scores ``(N, C)``, computed in float64, so that a row's do not depend on the rows beside it."""
        check_is_fitted(self)
        rows = validate_data(self, X, dtype=[np.float32, np.float64], reset=False)
        head = type(self.head_)(self.head_.in_features, self.head_.num_classes, **self.head_.options).double().eval()
        head.load_state_dict(self.head_.state_dict())
        with torch.inference_mode():
            parts = [
                head(torch.from_numpy(_float32(part)).double())
                for part in np.split(rows, range(_ROWS, len(rows), _ROWS))
            ]
        return torch.cat(parts).numpy()

    def decision_function(self, X: ArrayLike) -> NDArray[np.float64]:
        """Scores ``(N, C)``; with two classes the second's lead over the first, ``(N,)``."""
        logits = self._logits(X)
        return logits[:, 1] - logits[:, 0] if len(self.classes_) == 2 else logits

    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """Softmax of the scores, ``(N, C)``; after a top-k loss it orders the classes well, but is not calibrated."""
        return torch.from_numpy(self._logits(X)).softmax(1).numpy()

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """The best class of every row, ``(N,)``."""
        best: NDArray[Any] = self.predict_topk(X, 1)[:, 0]
        return best

    def predict_topk(self, X: ArrayLike, k: int = 5) -> NDArray[Any]:
        """The k best classes of every row, ``(N, k)``, the best first; equal scores in the order of the classes.

        Raises:
            InputError: ``k`` is below 1 or above the number of classes.
        """
        check_is_fitted(self)
        if not 1 <= k <= len(self.classes_):
            raise InputError(f"k is {k}, expected 1 to {len(self.classes_)}, the number of classes")
        order = np.argsort(-self._logits(X), axis=1, kind="stable")[:, :k]
        best: NDArray[Any] = self.classes_[order]
        return best

    def score_topk(self, X: ArrayLike, y: ArrayLike, k: int = 5) -> float:
        """Share of the rows whose class is among the k best.

        Raises:
            InputError: ``k`` is below 1 or above the number of classes.
        """
        return float((self.predict_topk(X, k) == np.asarray(y)[:, None]).any(axis=1).mean())


# The settings that a parameter stands for under its own name.
_SHARED = tuple(
    field.name for field in dataclasses.fields(TrainConfig) if field.name not in ("p_k", "start", "select", "seed")
)


def _float32(rows: NDArray[Any]) -> NDArray[np.float32]:
    """A float32 copy that torch may share.

    Raises:
        InputError: A value beyond float32's range.
    """
    with np.errstate(over="ignore"):
        copy = np.array(rows, dtype=np.float32, order="C")
    if not np.isfinite(copy).all():
        raise InputError("X holds a value beyond the range of float32; scale the features first")
    return copy
