"""A scikit-learn classifier over the trainer."""

import dataclasses
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from ..core.arguments import named
from ..core.errors import InputError
from ..core.printable import shown
from ..models.heads import Linear
from .config import TrainConfig
from .fitting import fit_heads
from .plain import is_number, plain
from .run import Run
from .starting import BACKBONE, BACKBONE_IN_ORDER, RANDOM, ZEROS, Start, start_head
from .unread import in_vain

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
        top1_mode: How top-1 enters: ``smce``, ``sm`` or ``sort``.
        softmax_over: What its softmax runs over: ``candidates`` or ``classes``.
        label_smoothing: Share of the cross-entropy with uniform targets.
        head: ``linear``, ``norm_linear``, ``cosine`` or ``mlp``.
        norm: What ``norm_linear`` does first: ``standard``, ``layer`` or ``unit``.
        hidden: Units in the hidden layer of ``mlp``.
        start: ``random``, ``zeros``, or a run folder or the head file in one, whose classes are these, by name. Whether
            X is of that run's backbone nobody can check.
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
            accuracy on them (see ``select``), and stop after ``patience`` epochs without a better one. Otherwise
            all rows train, and the last epoch is kept.
        validation_fraction: Share of a class's rows that is held out, at least one; a class of one row trains.
        select: What chooses the epoch on them: accuracy weighted by ``p_k``, ``top1``, ``top5``, or weights of top-1,
            top-2, ...
        patience: Epochs without a better validation accuracy; ``None`` is 10, or as many as make 300 steps.
        random_state: Fixes the order of the rows, what is drawn, and what is held out.

    Attributes:
        classes_: ``(C,)`` the classes, sorted.
        n_features_in_: D.
        head_: The fitted head, a `torch.nn.Module` on the CPU.
        config_: Its settings, every default filled in.
        history_: The metrics of every epoch.
        n_iter_: Epochs that ran.
        coef_: ``(C, D)`` weights of an affine head (``linear``, or ``norm_linear`` with what its norm does folded in),
            ``(1, D)`` with two classes, as of `sklearn.linear_model.LogisticRegression`; another head has none.
        intercept_: ``(C,)`` or ``(1,)``, the same.
    """

    @named
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
        start: str = TrainConfig.start,
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
        select: str | Sequence[float] = TrainConfig.select,
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
        self.start = start
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
        self.select = select
        self.patience = patience
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Fit the head; settings that it does not read are warned of.

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
        rows, config = self._rows(features, labels, random), self._config(random)
        for message in in_vain(config, _SHARED):
            warnings.warn(message, UserWarning, stacklevel=2)
        [fitted] = fit_heads(rows, len(self.classes_), [config], self._start(config))
        if fitted.diverged:
            raise InputError(f"loss became infinite or NaN; lower learning_rate (now {fitted.config.step_size:g})")
        self.head_, self.config_, self.history_ = fitted.head, fitted.config, fitted.history
        self.n_iter_ = len(fitted.history)
        return self

    def _rows(self, X: NDArray[Any], labels: NDArray[Any], random: np.random.RandomState) -> dict[str, Any]:
        share = plain(self.validation_fraction)
        if not is_number(share) or not 0 < share < 1:
            raise InputError(f"validation_fraction: {share} found, expected a share above 0 and below 1")
        held_out = np.zeros(len(labels), bool)
        if self.early_stopping:
            held_out[_hold_out(labels, share, random)] = True
            if not held_out.any():
                raise InputError("early_stopping: no class has two rows, so that none can be held out; leave it False")
        parts = {"train": ~held_out} | ({"val": held_out} if self.early_stopping else {})
        return {
            name: (torch.from_numpy(_float32(X[rows])), torch.from_numpy(labels[rows].astype(np.int64)))
            for name, rows in parts.items()
        }

    def _config(self, random: np.random.RandomState) -> TrainConfig:
        own = {name: getattr(self, name) for name in _SHARED}
        return TrainConfig(**own, seed=random.randint(2**31 - 1))

    def _start(self, config: TrainConfig) -> Start:
        """The head before its first step; arrays say of no backbone, so that a run's is taken for theirs."""
        names, backbone, path = [str(name) for name in self.classes_], None, Path(config.start)
        if config.start not in (RANDOM, ZEROS, BACKBONE, BACKBONE_IN_ORDER) and path.exists():
            backbone = Run.load(path if path.is_dir() else path.parent).record["backbone"]
        return start_head(config, self.n_features_in_, names, backbone)

    @property
    def coef_(self) -> NDArray[np.float32]:
        """Weights of an affine head."""
        weight = self._affine("coef_").weight.detach().numpy()
        return weight[1:] - weight[:1] if len(self.classes_) == 2 else weight

    @property
    def intercept_(self) -> NDArray[np.float32]:
        """Biases of an affine head."""
        bias = self._affine("intercept_").bias.detach().numpy()
        return bias[1:] - bias[:1] if len(self.classes_) == 2 else bias

    def _affine(self, asked: str) -> Linear:
        check_is_fitted(self)
        folded = self.head_.folded()
        if not isinstance(folded, Linear):
            raise AttributeError(f"{asked}: a head {self.head!r} is not affine; head='linear' is")
        return folded

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

    def predict_log_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """Logarithm of `predict_proba`, ``(N, C)``, finite where that is 0."""
        return torch.from_numpy(self._logits(X)).log_softmax(1).numpy()

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
        if not is_number(plain(k)) or k not in range(1, len(self.classes_) + 1):
            raise InputError(f"k: {shown(k)} found, expected 1 to {len(self.classes_)}, the number of classes")
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
_SHARED = tuple(field.name for field in dataclasses.fields(TrainConfig) if field.name != "seed")


def _hold_out(labels: NDArray[Any], share: float, random: np.random.RandomState) -> NDArray[np.intp]:
    """A share of every class's rows, drawn, at least one; none of a class of one row."""
    shuffled = random.permutation(len(labels))
    order = shuffled[np.argsort(labels[shuffled], kind="stable")]
    counts = np.bincount(labels)
    drawn = np.minimum(np.maximum(1, np.rint(share * counts)), counts - 1)
    rank = np.arange(len(order)) - np.repeat(np.cumsum(counts) - counts, counts)
    return order[rank < np.repeat(drawn, counts)]


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
