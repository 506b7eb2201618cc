"""What an export does not import: each of these costs as long as the export of a head itself, or longer."""

import subprocess
import sys

from PIL import Image

HEAVY = ("torchvision", "timm", "datasets", "matplotlib", "onnxscript", "onnx_ir", "huggingface_hub", "sympy")
CODE = """
import sys

from PIL import Image
from headsmith.export import export_classifier
export_classifier(sys.argv[1], out=sys.argv[2], head_only=True)
print([name for name in sys.argv[3:] if name in sys.modules])
"""


def test_a_head_alone_needs_nothing_of_images_and_of_tracing(tiny_run, tmp_path):
    arguments = [sys.executable, "-c", CODE, str(tiny_run.path), str(tmp_path / "bundle"), *HEAVY]
    assert subprocess.run(arguments, check=True, capture_output=True, text=True).stdout == "[]\n"


def imported(code: str, *arguments: object) -> set[str]:
    """The packages that are imported once ``code`` has run."""
    code = f"import sys\n{code}\nprint(*{{name.partition('.')[0] for name in sys.modules}})"
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)], check=True, capture_output=True, text=True
    )
    return set(done.stdout.splitlines()[-1].split())


def test_a_prediction_needs_onnxruntime_numpy_and_pillow(tiny_bundle, tmp_path):
    Image.new("RGB", (40, 40)).save(tmp_path / "a.png")
    code = "from headsmith import predict\npredict(sys.argv[1], [sys.argv[2]])"
    found = imported(code, tiny_bundle.path, tmp_path / "a.png")
    assert found >= {"onnxruntime", "numpy", "PIL"}
    assert not found & {"torch", "torchvision", "timm", "scipy", "pandas", "sklearn", "datasets", "onnx", "pyarrow"}


def test_the_measurement_of_onnx_files_needs_no_torch(tiny_bundle, image_folder, tmp_path):
    images = image_folder({"cat": 3, "dog": 3})
    code = "from headsmith import evaluate_classifiers as run\nrun(sys.argv[1], data=sys.argv[2], out=sys.argv[3])"
    found = imported(code, tiny_bundle.path, images, tmp_path / "results")
    assert not found & {"torch", "torchvision", "timm", "datasets"}
