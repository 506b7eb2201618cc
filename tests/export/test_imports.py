"""What an export does not import: each of these costs as long as the export of a head itself, or longer."""

import subprocess
import sys

HEAVY = ("torchvision", "timm", "datasets", "matplotlib", "onnxscript", "onnx_ir", "huggingface_hub", "sympy")
CODE = """
import sys
from headsmith.export import export_classifier
export_classifier(sys.argv[1], out=sys.argv[2], head_only=True)
print([name for name in sys.argv[3:] if name in sys.modules])
"""


def test_a_head_alone_needs_nothing_of_images_and_of_tracing(tiny_run, tmp_path):
    arguments = [sys.executable, "-c", CODE, str(tiny_run.path), str(tmp_path / "bundle"), *HEAVY]
    assert subprocess.run(arguments, check=True, capture_output=True, text=True).stdout == "[]\n"
