"""The classifiers of a page, ranked, with what each answered."""

from collections import Counter
from dataclasses import dataclass

from ...core.errors import DamagedFileError, InputError
from ...core.printable import printable
from ..result import EvalResult
from ..results import Predictions, Results
from ..results.predictions import same_rows
from ..statistics import Standing, standings


@dataclass(frozen=True)
class RankedModel:
    """A classifier on the page.

    Attributes:
        name: Its name, with control characters made visible; where two are equal, with what tells them apart.
        result: What was measured.
        predictions: What it answered.
        standing: Its place.
    """

    name: str
    result: EvalResult
    predictions: Predictions
    standing: Standing


def ranked_models(results: Results) -> list[RankedModel]:
    """All classifiers of a results folder, the best first.

    Raises:
        InputError: There is none, or they were not measured on the same inputs.
        DamagedFileError: A result is of other groups than its inputs.
    """
    if not results.models:
        reasons = "".join(f"; {failed.line}" for failed in results.failed[:1])
        raise InputError(f"{results.path}: no model in it was measured{reasons}")
    names = [printable(one.model) for one in results]
    count = Counter(names)
    names = [name if count[name] == 1 else f"{name} ({one.key[:8]})" for name, one in zip(names, results, strict=True)]
    found = {name: (one, results.predictions(one.key)) for name, one in zip(names, results, strict=True)}
    if not same_rows([predictions for _, predictions in found.values()]):
        raise InputError(f"{results.path}: not all models were measured on the same inputs; evaluate them again")
    for one, predictions in found.values():
        if set(one.groups) != set(predictions.groups or ()):
            raise DamagedFileError(
                f"{results.path}: {one.model}: its groups are not those of its inputs; evaluate again"
            )
    places = standings({name: predictions.scores.correct() for name, (_, predictions) in found.items()})
    return [RankedModel(place.name, *found[place.name], place) for place in places]
