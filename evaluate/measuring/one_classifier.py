"""One classifier of an evaluation, from its file to its place in the results folder."""

import os
from dataclasses import replace
from datetime import UTC, datetime

from ...core.coded_warnings import CodedWarning
from ...core.counted import counted
from ...core.environment import RUNTIMES, cpu_name, describe_cpu, describe_device, pick_device, versions
from ...core.errors import InputError, ProviderError, with_keywords
from ...core.files import sha256_json
from ...core.memory_shortage import halving, memory_note
from ...export.formats.node_placement import misplaced_nodes, nodes_by_provider
from ...export.held_out import HeldOut
from ...export.runtime import Array, Model
from ...metrics.chance import largest_share
from ...models.execution_provider import ExecutionProvider
from ...models.images import described
from ..evaluation_warnings import in_keywords, warnings_of, was_trained_on
from ..metrics import Summary, class_table, confused_pairs, reliability, selective, summarize, summarize_groups
from ..options import KS, EvaluationOptions
from ..result import EvalResult, EvaluationSetup, FailedModel
from ..results import Predictions, ResultsFolder
from ..zoo import Candidate, Failed, open_candidate
from ..zoo.external_onnx import ExternalOnnxModel
from ..zoo.failure import failure
from .cpu_difference import beside_cpu, moved
from .one_pass import Measurement, class_order, measure
from .published import flips, judge
from .setup_check import probed
from .speed_figures import gpu_name, speed_of_pass

CONFUSED = 100
THAT_MATTER = ("headsmith", *RUNTIMES, "torch", "torchvision", "pillow")


def evaluate_one(
    candidate: Candidate | Failed,
    provider: ExecutionProvider,
    data: HeldOut,
    folder: ResultsFolder,
    options: EvaluationOptions,
) -> EvalResult | FailedModel:
    """Measure one classifier under one of the providers and keep the result, or say why that failed.

    Latency and memory are timed later. Where memory does not do the batch is halved, and timing takes that one.
    """
    key, conditions = _key(candidate, provider, data, options), _conditions(provider, options)
    try:
        if isinstance(candidate, Failed):
            raise InputError(candidate.error)
        found = folder.find(key)
        if found is not None and _holds(found, conditions, folder, options):
            return found
        model = open_candidate(candidate, provider, options.threads)
        (result, predictions, logits), size = halving(
            options.batch_size, lambda size: _measure(candidate, model, data, replace(options, batch_size=size))
        )
    except ProviderError:
        raise
    except Exception as error:  # noqa: BLE001 - a file may make its runtime raise anything, and the others are measured
        name = folder.name_for(candidate.id, key, provider.name)
        return FailedModel(name, candidate.source, failure(error, candidate.source), key)
    name, notes = folder.name_for(candidate.id, key, provider.name), memory_note(size, options.batch_size)
    result = replace(result, model=name, conditions=conditions, notes=[*result.notes, *notes])
    folder.add(result, predictions, logits)
    return result


def is_timed(result: EvalResult, options: EvaluationOptions) -> bool:
    """Whether its latency was timed for as long as is asked."""
    return result.speed.latency is not None and result.speed.thorough >= options.speed


def _measure(
    candidate: Candidate, model: Model, data: HeldOut, options: EvaluationOptions
) -> tuple[EvalResult, Predictions, Array | None]:
    _check_k(candidate, model, options)
    _check_nodes(candidate, model, options)
    held_out = data.for_classifier(model.metadata, candidate.names, strict=options.strict)
    probe_warnings, notes = probed(candidate, model, held_out, options.batch_size)
    measured = measure(model, held_out, options)
    notes += _remarked(held_out, candidate)
    speed = speed_of_pass(model, held_out, measured, options)
    on_cpu = beside_cpu(candidate, model, held_out, options)
    against = None
    if options.against is not None:
        from .torch_comparison import torch_twin

        twin = torch_twin(candidate, model)
        other = measure(twin, held_out, replace(options, save_logits=False))
        against = flips(measured.scores, other.scores, measured.ids, twin.settings.runtime)
    order, scores = class_order(held_out.index, len(candidate.labels)), measured.scores
    correct, multi_label = scores.correct(), scores.multi_label
    groups = None if data.groups is None else [data.groups[row] for row in measured.rows]
    summary, trained_on = summarize(scores, ks=options.k), was_trained_on(data.place, candidate.bundle)
    result = EvalResult(
        key=_key(candidate, model.provider, data, options),
        model=candidate.id,
        source=candidate.source,
        labels=[*data.class_names, *(candidate.labels[output] for output in order[len(data.class_names) :])],
        summary=summary,
        subset=None if measured.subset is None else summarize(measured.subset, ks=options.k),
        groups={} if groups is None else summarize_groups(scores, groups, ks=options.k),
        classes=None if multi_label else class_table(scores),
        confused=None if multi_label else confused_pairs(scores, limit=CONFUSED),
        reliability=reliability(scores.confidences, correct),
        selective=selective(scores.confidences, correct),
        speed=speed,
        setup=_setup(candidate, model, data, options),
        verdict=None,
        against=against,
        warnings=[
            *in_keywords([*candidate.warnings, *probe_warnings, *_strange_scores(model), *moved(on_cpu, model)]),
            *warnings_of(summary, measured, _chance(data, measured, summary), trained_on),
        ],
        not_finite=measured.not_finite,
        not_finite_at=measured.not_finite_at,
        unreadable=list(held_out.unreadable),
        duplicates=data.duplicates,
        notes=[*map(with_keywords, candidate.notes), *notes],
        beside_cpu=on_cpu,
    )
    predictions = Predictions(measured.ids, scores, groups)
    result = replace(result, predictions_sha256=predictions.digest)
    published = candidate.published
    if published is not None:
        top5 = None if published.top5 is None else published.top5 / 100
        result = replace(result, verdict=judge(result.top1, published.top1 / 100, top5, published.source))
    return result, predictions, measured.logits


def _remarked(held_out: HeldOut, candidate: Candidate) -> list[str]:
    """How many of the images that were read were more than plain RGB or grey, and what was done with them."""
    found = held_out.remarks
    if not found or candidate.preprocessing is None:
        return []
    said = described(found, candidate.preprocessing.background)
    return [f"{counted(count, 'image')} with {remark}" for remark, count in zip(said, found.values(), strict=True)]


def _strange_scores(model: Model) -> list[CodedWarning]:
    """What to say of probabilities that do not sum to 1, and of logits that may be probabilities."""
    if not isinstance(model, ExternalOnnxModel):
        return []
    found = []
    if model.strange_sums:
        message = "its probabilities do not sum to 1: is its softmax over another axis than the classes?"
        found.append(CodedWarning("sums", message))
    if model.like_probabilities:
        message = (
            "outputs lie in 0..1: are they probabilities? They are taken as logits: the order of the classes stands, "
            "NLL, Brier score and calibration do not; make the logits an output and name it with --output"
        )
        found.append(CodedWarning("probabilities", message))
    return found


def _key(candidate: Candidate | Failed, provider: ExecutionProvider, data: HeldOut, options: EvaluationOptions) -> str:
    """A hash of what is asked, and of whom: a classifier has one row for each, however and wherever it was measured."""
    about = candidate.source if isinstance(candidate, Failed) else candidate.fingerprint
    return sha256_json([candidate.id, about, data.fingerprint, provider.asked, options.allow_fallback, options.strict])[
        :32
    ]


def _conditions(provider: ExecutionProvider, options: EvaluationOptions) -> str:
    """A hash of where and with what it is answered: under others a classifier is measured again, in its place."""
    installed = {name: version for name, version in versions().items() if name in THAT_MATTER}
    return sha256_json(
        [cpu_name(), os.cpu_count(), gpu_name(provider), options.threads, options.batch_size, installed]
    )[:32]


def _holds(found: EvalResult, conditions: str, folder: ResultsFolder, options: EvaluationOptions) -> bool:
    """Whether a result was measured under these conditions, and says all that is asked."""
    return (
        found.conditions == conditions
        and set(options.k) <= found.summary.top.keys()
        and (options.against is None or found.against is not None)
        and (not options.save_logits or folder.has_logits(found.key))
    )


def _check_k(candidate: Candidate, model: Model, options: EvaluationOptions) -> None:
    """Refuse a top-k of more classes than there are; that of the default is left out of such results."""
    classes = len(model.metadata.labels)
    beyond = [k for k in options.k if k > classes and k not in KS]
    if beyond:
        raise InputError(
            f"{candidate.source}: has {classes} classes, so that top-{beyond[-1]} is always right; give --k of at most "
            f"{classes}"
        )


def _check_nodes(candidate: Candidate, model: Model, options: EvaluationOptions) -> None:
    """Refuse a file that the provider does not run whole, unless that is allowed."""
    session = getattr(model, "session", None)
    if session is None or options.allow_fallback:
        return
    if wrong := misplaced_nodes(session, candidate.path):
        raise InputError(
            f"{candidate.source}: {len(wrong)} nodes ({', '.join(sorted(set(wrong)))}) do not run on "
            f"{model.settings.provider}; allow that with --allow-fallback, or use --provider cpu"
        )


def _chance(data: HeldOut, measured: Measurement, summary: Summary) -> float:
    """The share of inputs that naming always the same class has right, of the class for which that is most."""
    if data.sets is not None:
        return largest_share(data.sets[measured.rows])
    return summary.label_share or 0.0


def _setup(candidate: Candidate, model: Model, data: HeldOut, options: EvaluationOptions) -> EvaluationSetup:
    recipe = candidate.preprocessing
    image = recipe if not candidate.head_only else None
    return EvaluationSetup(
        file=candidate.path.name,
        bytes=candidate.bytes,
        parameters=candidate.parameters,
        image_size=image.crop_size[0] if image else None,
        crop_pct=recipe.crop_pct if recipe else None,
        interpolation=recipe.interpolation if recipe else None,
        preprocessing=recipe,
        provider=model.settings.provider,
        provider_name=model.provider.name,
        provider_options=model.settings.provider_options or {},
        nodes=nodes_by_provider(session) if (session := getattr(model, "session", None)) else {},
        threads=model.settings.threads,
        runtime=model.settings.runtime,
        device=_device(model),
        batch_size=model.metadata.batch_size(options.batch_size),
        data=data.name,
        data_sha256=data.fingerprint,
        model_sha256=candidate.fingerprint,
        labels_sha256=sha256_json(list(candidate.labels)),
        preprocessing_sha256=recipe.digest if recipe else "",
        versions=versions(),
        created=datetime.now(UTC).isoformat(timespec="seconds"),
    )


def _device(model: Model) -> str:
    """What it ran on, in words: the card's name, the CPU with its threads, or as the provider's options call it."""
    if model.provider.on_cuda:
        return describe_device(pick_device("cuda"))
    return model.provider.options.get("device_type") or describe_cpu(model.settings.threads)
