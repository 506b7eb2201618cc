"""A scikit-learn classifier over the trainer."""

import dataclasses
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from ..core.arguments import ArgumentError, named
from ..core.builtin_types import is_number, to_builtin
from ..core.errors import InputError, with_keywords
from ..core.printable import shown
from ..core.settings import documented, with_settings
from ..models.heads import Linear
from .features.importing.table import check_filled, to_numpy
from .fitting import fit_heads
from .fitting.fit import Split
from .initialization import BACKBONE, BACKBONE_IN_ORDER, RANDOM, ZEROS, Initialization, initialized_head
from .run import Run
from .run_warnings import divergence, useless_loss
from .train_config import TrainConfig
from .unused_settings import unused_settings

_ROWS = 8192


@documented("Args", TrainConfig, without=("seed",))
class HeadClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A head on features, with scikit-learn's interface: cross-entropy, or a differentiable top-k cross-entropy.

    Parameters that `headsmith.trainer.TrainConfig` has are its settings, with its defaults. `start` takes no backbone,
    and a run folder, or the head file in one, whose classes are these, by name; whether X is of that run's backbone
    nobody can check.

    Further parameters:
        early_stopping: Hold ``validation_fraction`` of the rows out, class by class, keep the epoch with the highest
            accuracy on them (see ``select``), and stop after ``patience`` epochs without a better one. Otherwise
            all rows train, and the last epoch is kept.
        validation_fraction: Share of a class's rows that is held out, at least one; a class of one row trains.
        random_state: Fixes the order of the rows, what is drawn, and what is held out.

    Attributes:
        classes_: ``(C,)`` the classes, sorted.
        n_features_in_: D.
        head_: The fitted head, a `torch.nn.Module` on the CPU.
        config_: Its settings, every default filled in.
        history_: The scores of every epoch, records of ``epoch``, ``loss``, ``seconds`` and ``val``.
        n_iter_: Epochs that ran.
        coef_: ``(C, D)`` weights of an affine head (``linear``, or ``norm_linear`` with what its norm does folded in),
            ``(1, D)`` with two classes, as of `sklearn.linear_model.LogisticRegression`; another head has none.
        intercept_: ``(C,)`` or ``(1,)``, the same.
    """

    @named
    @with_settings(TrainConfig, without=("seed",))
    def __init__(
        self,
        *,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        random_state: int | np.random.RandomState | None = None,
        **settings: Any,
    ) -> None:
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.random_state = random_state
        for name, value in settings.items():
            setattr(self, name, value)

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Fit the head; settings that it does not read, and a loss above that of equal scores, are warned of.

        Args:
            X: ``(N, D)`` features.
            y: ``(N,)`` classes, of any kind that scikit-learn takes.

        Raises:
            InputError: Settings that do not fit the data, values that are no numbers, classes without an order, a
                single class, or a loss that becomes infinite or NaN.
        """
        if not isinstance(to_builtin(self.early_stopping), bool):
            raise InputError(f"early_stopping: {shown(self.early_stopping)} found, expected True or False")
        for name, values in (("X", X), ("y", y)):
            if isinstance(values, np.ma.MaskedArray):
                raise InputError(f"{name}: a masked array found, whose masked values would count; leave those rows out")
        with _of_numbers():
            features, targets = validate_data(self, _read("X", X), _read("y", y), dtype=[np.float32, np.float64])
        _check_one_kind(targets)
        check_classification_targets(targets)
        self.classes_, labels = np.unique(targets, return_inverse=True)
        if len(self.classes_) < 2:
            raise InputError(f"y holds one class, {self.classes_.tolist()[0]!r}, expected at least 2")
        random = check_random_state(self.random_state)
        rows, config = self._rows(features, labels, random), self._config(random)
        for message in unused_settings(config, _SHARED):
            warnings.warn(with_keywords(message), UserWarning, stacklevel=2)
        [fitted] = fit_heads(rows, len(self.classes_), [config], self._start(config))
        if fitted.diverged:
            raise InputError(
                f"{divergence(fitted.history[-1])}; lower `learning_rate` (now {fitted.config.step_size:g})"
            )
        if useless := useless_loss(fitted, len(self.classes_)):
            warnings.warn(with_keywords(useless.message), UserWarning, stacklevel=2)
        self.head_, self.config_, self.history_ = fitted.head, fitted.config, fitted.history
        self.n_iter_ = len(fitted.history)
        return self

    def _rows(self, X: NDArray[Any], labels: NDArray[Any], random: np.random.RandomState) -> dict[str, Split]:
        share = to_builtin(self.validation_fraction)
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

    def _start(self, config: TrainConfig) -> Initialization:
        """The head before its first step; arrays say of no backbone, so that a run's is taken for theirs."""
        names, backbone, path = [str(name) for name in self.classes_], None, Path(config.start)
        if config.start not in (RANDOM, ZEROS, BACKBONE, BACKBONE_IN_ORDER) and path.exists():
            backbone = Run.load(path if path.is_dir() else path.parent).record.backbone
        return initialized_head(config, self.n_features_in_, names, backbone)

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
        with _of_numbers():
            rows = validate_data(self, _read("X", X), dtype=[np.float32, np.float64], reset=False)
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
        if not is_number(to_builtin(k)) or k not in range(1, len(self.classes_) + 1):
            raise InputError(f"k: {shown(k)} found, expected 1 to {len(self.classes_)}, the number of classes")
        order = np.argsort(-self._logits(X), axis=1, kind="stable")[:, :k]
        best: NDArray[Any] = self.classes_[order]
        return best

    def score_topk(self, X: ArrayLike, y: ArrayLike, k: int = 5) -> float:
        """Share of the rows whose class is among the k best.

        Raises:
            InputError: ``k`` is below 1 or above the number of classes; or ``y`` has not a label for every row, or one
                that training never saw.
        """
        best, labels = self.predict_topk(X, k), np.asarray(_read("y", y))
        if labels.shape != (len(best),):
            raise InputError(f"y: shape {labels.shape} found, expected ({len(best)},), a label for every row of X")
        _check_one_kind(labels)
        unknown = np.setdiff1d(labels, self.classes_)
        if len(unknown):
            raise InputError(
                f"y: {shown(unknown.tolist()[0])} found, which is none of the {len(self.classes_)} classes"
            )
        return float((best == labels[:, None]).any(axis=1).mean())


# The settings that a parameter stands for under its own name.
_SHARED = tuple(field.name for field in dataclasses.fields(TrainConfig) if field.name != "seed")


def _read(name: str, values: Any) -> Any:
    """A tensor as an array, whatever its dtype and wherever it is; other values as they are."""
    if not isinstance(values, torch.Tensor):
        return values
    check_filled(name, values)
    return to_numpy(values)


@contextmanager
def _of_numbers() -> Iterator[None]:
    """Tell values of X that are no numbers as such; scikit-learn tells the others."""
    try:
        yield
    except TypeError as error:
        raise ArgumentError(f"X: {error}; expected an array (N, D) of numbers") from None


def _check_one_kind(labels: NDArray[Any]) -> None:
    """Raise an `InputError` for labels that have no order, such as text among numbers."""
    if labels.dtype != object:
        return
    try:
        np.unique(labels)
    except TypeError:
        kinds = [type(one) for one in labels.tolist()]
        row = next((row for row, kind in enumerate(kinds) if kind != kinds[0]), 0)
        raise InputError(
            f"y: {shown(labels[0])} in row 0 and {shown(labels[row])} in row {row}, expected numbers or text, not both"
        ) from None


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
