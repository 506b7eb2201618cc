"""The model card of a bundle: what it is, how accurate its files were measured to be, and how to run it."""

from collections.abc import Mapping

from ...core.counted import counted
from ...metrics.proportions import Share
from ...models.images import MOST_ASPECT
from ...models.preprocessing import Preprocessing
from ..formats.decoding import WARNING as DECODER_WARNING
from ..formats.torchscript_format import DEPRECATION
from ..metadata import Metadata
from ..options import TOP_K
from ..parity.proof_at_export import Proof
from .manifest import Calibration, Manifest, PrecisionRecord, ResizeParity

PIXELS = {
    "float-nchw": ("float32 `(N, 3, {0}, {1})`", "dtype=np.float32).transpose(2, 0, 1)[None]"),
    "uint8-nhwc": ("uint8 `(N, {0}, {1}, 3)`", "dtype=np.uint8)[None]"),
}
TIMM = (
    '`model.safetensors` and `config.json` are for `timm.create_model("local-dir:FOLDER", pretrained=True)`, whose '
    "networks take normalised images and give logits."
)
CARD_FORMATS = ("JPEG", "PNG", "WEBP", "GIF", "BMP")
UNCHECKED = (
    "This code reads JPEG, PNG, WebP, GIF and BMP. It does not check all that `headsmith predict` does, as whether a "
    "file was cut; for files of strangers use that."
)
ENCODED_CODE = """import json

import numpy as np
import onnxruntime
import onnxruntime_extensions

options = onnxruntime.SessionOptions()
options.register_custom_ops_library(onnxruntime_extensions.get_library_path())
session = onnxruntime.InferenceSession("model.onnx", options, providers=["CPUExecutionProvider"])
labels = json.loads(session.get_modelmeta().custom_metadata_map["labels"])
image = np.fromfile("photo.jpg", dtype=np.uint8)
content = image.tobytes()  # the decoder waits for ever for the rest of a cut JPEG, and ends the process on other files
is_jpeg = content[:2] == b"\\xff\\xd8" and content[-2:] == b"\\xff\\xd9"
is_png = content[:4] == b"\\x89PNG" and content[-8:] == b"IEND\\xaeB`\\x82"
if not is_jpeg and not is_png:
    raise SystemExit("photo.jpg: not a whole JPEG or PNG file")
logits, scores, indices = session.run(["logits", "topk_scores", "topk_indices"], {"pixel_values": image})
print([(labels[index], float(score)) for index, score in zip(indices[0], scores[0])])"""

FEATURES_CODE = """import json

import numpy as np
import onnxruntime

session = onnxruntime.InferenceSession("model.onnx", providers=["CPUExecutionProvider"])
labels = json.loads(session.get_modelmeta().custom_metadata_map["labels"])
features = np.load("features.npy").astype(np.float32)
logits, scores, indices = session.run(["logits", "topk_scores", "topk_indices"], {"features": features})
for row in range(len(features)):
    print([(labels[index], float(score)) for index, score in zip(indices[row], scores[row])])"""


def model_card(name: str, manifest: Manifest, metadata: Metadata, proofs: Mapping[str, Proof]) -> str:
    """The card as Markdown. No class name stands in it, so that none can break it."""
    parts = (
        _what(name, manifest, metadata),
        _accuracy(manifest, proofs),
        _usage(manifest, metadata, proofs),
        *([_precision(manifest.precision)] if manifest.precision else []),
        *([_calibration(manifest.calibration)] if manifest.calibration else []),
        _parity(proofs),
        *([_resize(manifest.resize)] if manifest.resize else []),
        _origin(manifest, metadata),
    )
    return "\n\n".join(parts) + "\n"


def _what(name: str, manifest: Manifest, metadata: Metadata) -> str:
    head = manifest.head
    classes, backbone = f"with {head.num_classes} classes", _backbone(manifest, metadata)
    what = (
        f"A classification head {classes} that takes features, not images: those of {backbone}; this"
        if metadata.head_only
        else f"An image classifier {classes}, RGB images through {backbone}; its"
    )
    return (
        f"# {name}\n\n{what} {head.kind} head was trained with the "
        f"`{manifest.training['loss']}` loss by headsmith {metadata.version}.\n\n"
        "- `labels.txt`: the class names, one a line, in the order of the logits\n"
        "- `manifest.json`: preprocessing, origin, settings, versions and the hash of every file\n"
        "- `parity.json`: every comparison of the files with the Python module"
    )


def _backbone(manifest: Manifest, metadata: Metadata) -> str:
    spec = metadata.backbone.spec
    if manifest.features.of_tuned:
        return f"a `{spec}` backbone that was fine-tuned"
    return f"a frozen `{spec}` backbone" if spec else "a backbone that was not named (the features were imported)"


def _accuracy(manifest: Manifest, proofs: Mapping[str, Proof]) -> str:
    rows = [
        f"| `{file}` | {proof.settings.runtime} | {proof.top1.n} | {proof.top1.percent()} | "
        f"{proof.top5.percent() if proof.top5 else 'not applicable'} |"
        for file, proof in proofs.items()
    ]
    unreadable = len(manifest.held_out.unreadable)
    left_out = f" {unreadable} unreadable inputs were left out." if unreadable else ""
    left_out += " Some of them are others than the training measured: see `warnings` in `manifest.json`." * bool(
        manifest.warnings
    )
    return (
        "## Accuracy\n\nMeasured on the files themselves, on held-out inputs, with 95 % Wilson intervals."
        f"{left_out}\n\n| file | runtime | n | top-1 | top-5 |\n| --- | --- | --- | --- | --- |\n" + "\n".join(rows)
    )


def _usage(manifest: Manifest, metadata: Metadata, proofs: Mapping[str, Proof]) -> str:
    outputs = (
        "Outputs: `logits` float32 `(N, C)`; `topk_scores` float32 `(N, k)`, softmax probabilities of the best "
        f"k = min({TOP_K}, C) classes; `topk_indices` int64 `(N, k)`, the lower index first among equals."
    )
    if "probabilities" in manifest.outputs:
        outputs += " `probabilities` float32 `(N, C)`: the softmax of the logits."
    notes = [DEPRECATION] if "model.ts" in proofs else []
    notes += [TIMM] if "model.safetensors" in proofs else []
    notes += [DECODER_WARNING] if metadata.encoded else []
    warning = "".join(f"\n\n{note}" for note in notes)
    if metadata.head_only:
        takes = f"Input `features`: float32 `(N, {metadata.backbone.feature_dim})`, as the backbone gives them."
        code = f"\n\n```python\n{FEATURES_CODE}\n```" if "model.onnx" in proofs else ""
    else:
        takes = f"Input `pixel_values`: {_pixels(metadata)}; scale, mean and standard deviation are inside the file."
        code = "" if "model.onnx" not in proofs else f"\n\n```python\n{snippet(metadata)}\n```"
        code += f"\n\n{UNCHECKED}" if code and not metadata.encoded else ""
    return f"## Use\n\n{takes} {outputs}{code}{warning}"


def _pixels(metadata: Metadata) -> str:
    if metadata.encoded:
        return (
            "uint8 `(bytes,)`, one JPEG or PNG file; decoding (no EXIF orientation; alpha is dropped), resize and crop "
            "are inside"
        )
    shape, _ = PIXELS[metadata.input_format]
    if metadata.resize:
        return f"{shape.format('H', 'W')}, RGB in 0..255 of any height and width; resize and crop are inside too"
    return f"{shape.format(*metadata.recipe.crop_size)}, RGB in 0..255 after resize and crop"


def snippet(metadata: Metadata) -> str:
    """Python that classifies ``photo.jpg`` with nothing but onnxruntime, numpy and PIL."""
    if metadata.encoded:
        return ENCODED_CODE
    recipe = metadata.recipe
    height, width = recipe.crop_size
    _, array = PIXELS[metadata.input_format]
    return f"""import json

import numpy as np
import onnxruntime
from PIL import Image, ImageOps

session = onnxruntime.InferenceSession("model.onnx", providers=["CPUExecutionProvider"])
labels = json.loads(session.get_modelmeta().custom_metadata_map["labels"])
image = ImageOps.exif_transpose(Image.open("photo.jpg", formats={list(CARD_FORMATS)}))
if max(image.size) > {MOST_ASPECT} * min(image.size):
    raise SystemExit("photo.jpg: more than {MOST_ASPECT} times as long as wide; divide it")
if image.mode[0] in "IF" or (image.mode in ("L", "RGB") and "transparency" in image.info):  # which PIL clips or misses
    raise SystemExit("photo.jpg: more than 8 bits of grey, or a transparent colour; convert it to RGB or RGBA first")
{_flattening(recipe)}
{_resizing(recipe, array, height, width) if not metadata.resize else f"pixels = np.asarray(image, {array}"}
logits, scores, indices = session.run(["logits", "topk_scores", "topk_indices"], {{"pixel_values": pixels}})
print([(labels[index], float(score)) for index, score in zip(indices[0], scores[0])])"""


def _flattening(recipe: Preprocessing) -> str:
    if recipe.background is None:
        return 'image = image.convert("RGB")'
    return f"""background = Image.new("RGBA", image.size, {(*recipe.background, 255)})
image = Image.alpha_composite(background, image.convert("RGBA")).convert("RGB")"""


def _resizing(recipe: Preprocessing, array: str, height: int, width: int) -> str:
    left, top = (
        _middle(f"(image.{edge} - {crop}) / 2", recipe) for edge, crop in (("width", width), ("height", height))
    )
    return f"""image = image.resize({_size(recipe)}, Image.Resampling.{recipe.resampling.name})
left, top = {left}, {top}
pixels = np.asarray(image.crop((left, top, left + {width}, top + {height})), {array}"""


def _middle(half: str, recipe: Preprocessing) -> str:
    """Where the crop begins, rounded as the recipe does it: towards 0 where black is added."""
    padded = any(crop > edge for crop, edge in zip(recipe.crop_size, recipe.resize_size, strict=True))
    return f"max(round({half}), int({half}))" if padded else f"round({half})"


def _size(recipe: Preprocessing) -> str:
    """PIL's (width, height) after the resize, as an expression in ``image``."""
    height, width = recipe.resize_size
    if recipe.resize_mode == "exact":
        return f"({width}, {height})"
    return f"[{height} * edge // min(image.size) for edge in image.size]"


def _parity(proofs: Mapping[str, Proof]) -> str:
    reports = [proof.parity for proof in proofs.values()]
    rows = [
        f"| `{report.name}` | {report.n} | {report.equal_top1} | {report.equal_topk} | "
        f"{report.max_abs_difference:.2e} | {report.flipped} |"
        for report in reports
    ]
    sizes = ", ".join(map(str, sorted(reports[0].batches)))
    says = (
        f"No logit differs by more than {max(report.allowed_difference for report in reports):.2g}; every flip is a "
        f"tie or on a margin of at most {max(report.tolerance for report in reports):.2g} logits; batches of {sizes} "
        "agree too."
        if all(report.exact for report in reports)
        else f"`{reports[0].name}` is rounded; what that costs stands under Precision."
    )
    return (
        f"## Parity with the Python module\n\n{says}\n\n"
        f"| file | n | equal top-1 | equal top-{reports[0].k} sets | largest difference in logits | flips |\n"
        "| --- | --- | --- | --- | --- | --- |\n" + "\n".join(rows)
    )


def _resize(found: ResizeParity) -> str:
    return (
        "## Resize inside the file\n\nThe head was trained behind PIL's resize, which rounds to whole pixels; that of "
        f"the file does not. On the {found.n} held-out images a pixel differs by "
        f"{found.mean_pixel_difference:.2f} of 255 on average and by {found.largest_pixel_difference:.1f} at "
        f"most, a logit by {found.max_abs_difference:.2e} at most; "
        f"{counted(found.equal_top1, 'image has', 'images have')} the same best "
        f"class, {found.equal_topk} the same top-{found.k} set."
    )


def _origin(manifest: Manifest, metadata: Metadata) -> str:
    weights = metadata.backbone.weights_sha256
    backbone = (
        f"- backbone weights: sha256 `{weights}`\n- preprocessing: sha256 `{metadata.preprocessing_sha256}`\n"
        if weights
        else ""
    )
    return (
        f"## Origin\n\n{backbone}"
        f"- labels: sha256 `{metadata.labels_sha256}`\n"
        f"- feature set: `{metadata.feature_set}`{_trained(manifest)}"
    )


def _trained(manifest: Manifest) -> str:
    """What training said of the head; nothing without a test split."""
    test = manifest.results.test
    if test is None:
        return ""
    top5 = "" if test.top5 is None else f", top-5 {100 * test.top5:.2f} %"
    what = "network on the test images" if manifest.features.of_tuned else "head on the cached test features"
    return f"\n- the {what}, when trained: top-1 {100 * test.top1:.2f} %{top5}"


def _precision(found: PrecisionRecord) -> str:
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
        f"Top-1 drops by {found.top1_drop:.2f} points: "
        f"{counted(test.only_first, 'input is', 'inputs are')} right in fp32 alone, "
        f"{test.only_second} in {kind} alone (McNemar's exact test: p = {test.p:.2g}); {found.flips} best "
        f"classes flip. {found.power}. Under {settings.runtime}, {settings.provider}, "
        f"{counted(settings.threads, 'thread')}, {speed}."
    )


def _calibration(found: Calibration) -> str:
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
