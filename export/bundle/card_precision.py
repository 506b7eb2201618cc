"""What the model card says of a lower precision and of calibrated probabilities."""

from ...metrics.proportions import Share
from .manifest import Calibration, PrecisionRecord


def precision_section(found: PrecisionRecord) -> str:
    """A file in lower precision beside the float32 file; ``found`` is the manifest's ``precision``."""
    full, lower, kind = found.full, found.lower, found.precision
    rows = [
        f"| {name} | {_percent(side.top1)} | {_percent(side.top5)} | {side.images_per_second:,.0f} |"
        for name, side in (("fp32", full), (kind, lower))
    ]
    test = found.tests["top1"]
    faster = lower.images_per_second / full.images_per_second
    settings = found.settings
    speed = f"{kind} is {faster:.1f} times as fast" if faster > 1 else f"{kind} is not faster here"
    return (
        f"## Precision\n\n`model.onnx` computes in {kind}. Beside the float32 file of the same export, on the same "
        f"{found.agreement.n} validation inputs, prepared alike:\n\n"
        "| precision | top-1 | top-5 | inputs a second |\n| --- | --- | --- | --- |\n" + "\n".join(rows) + "\n\n"
        f"Top-1 drops by {found.top1_drop:.2f} points: {test.only_first} inputs are right in fp32 alone, "
        f"{test.only_second} in {kind} alone (McNemar's exact test: p = {test.p:.2g}); {found.flips} best "
        f"classes flip. {found.power}. Under {settings.runtime}, {settings.provider}, "
        f"{settings.threads} threads, {speed}."
    )


def calibration_section(found: Calibration) -> str:
    """What a temperature changed; ``found`` is the manifest's ``calibration``."""
    rows = [
        f"| {split} | {before.n} | {before.ece:.4f} | {found.after[split].ece:.4f} | {before.nll:.4f} | "
        f"{found.after[split].nll:.4f} |"
        for split, before in found.before.items()
    ]
    return (
        f"## Calibration\n\nThe logits are divided by a temperature of {found.temperature:.4g}, fitted on "
        "validation and put into the weights of the last layer; the order of the classes is that of the trained head. "
        "Expected calibration error (15 bins of equal width), negative log-likelihood in nats, on cached features:\n\n"
        "| split | n | ECE before | ECE after | NLL before | NLL after |\n| --- | --- | --- | --- | --- | --- |\n"
        + "\n".join(rows)
    )


def _percent(share: Share | None) -> str:
    return "not applicable" if share is None else share.percent()
