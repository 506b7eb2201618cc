"""Open what was found."""

from ...export.runtime import Model, checked_threads, open_model
from ...models.execution_provider import AnyProvider, provider_of
from .candidate import Candidate
from .external_onnx import ExternalOnnxModel


def open_candidate(candidate: Candidate, provider: AnyProvider = "cpu", threads: int | None = None) -> Model:
    """Open a candidate's file, whatever its origin, as a model that takes RGB pixels and gives logits.

    Args:
        candidate: One of `find_candidates`.
        provider: See `open_model`; it runs, or it is an error.
        threads: Threads inside an operator; ``None`` takes ``OMP_NUM_THREADS``, else the CPUs of this process.

    Returns:
        A model whose `Model.run` takes what ``model.metadata.prepare`` gives, and whose labels are those of the
        candidate.

    Raises:
        InputError: A file that is damaged or too new, or a provider that does not run here.
    """
    if candidate.setup is None:
        return open_model(candidate.path, provider=provider, threads=threads)
    return ExternalOnnxModel(candidate, provider_of(provider), checked_threads(threads))
