"""Runs in a process of its own, in which onnxruntime is that of OpenVINO: ours, and onnxruntime called directly.

Arguments: a folder with bundle, images, benchmark.yaml, bf16.yaml and pixels.npy, which takes what is made.
"""

import json
import os
import sys
from pathlib import Path

import numpy as np
import onnxruntime

from headsmith import InputError, predict
from headsmith.core.records import to_json
from headsmith.evaluate import evaluate_classifiers
from headsmith.evaluate.benchmark import benchmark

BF16 = {"load_config": json.dumps({"CPU": {"INFERENCE_PRECISION_HINT": "bf16"}})}


def directly(pixels):
    """The logits of each provider, by nobody's code but onnxruntime's."""
    asked = {
        "cpu": [("CPUExecutionProvider", {})],
        "openvino": [("OpenVINOExecutionProvider", {"num_of_threads": "1"})],
        "bf16": [("OpenVINOExecutionProvider", {"num_of_threads": "1"} | BF16)],
    }
    found = {}
    for name, providers in asked.items():
        session = onnxruntime.InferenceSession("bundle/model.onnx", providers=providers)
        (taken,) = session.get_inputs()
        found[name] = session.run(["logits"], {taken.name: pixels})[0]
    return found


def refused(**asked):
    try:
        evaluate_classifiers(**{"models": "bundle", "data": "images", "out": "refused"} | asked)
    except InputError as error:
        return str(error)
    return ""


def main():
    os.chdir(sys.argv[1])
    pixels = np.load("pixels.npy")
    settings = {"batch_size": len(pixels), "threads": 1}
    results = evaluate_classifiers(
        "bundle", data="images", out="results", provider=["cpu", "openvino", "bf16.yaml"], save_logits=True, **settings
    )
    det = {"models": "det.onnx", "preprocessing": "recipe.yaml", "labels": "labels.txt", "provider": "openvino"}
    Path("bad.yaml").write_text("provider: openvino\noptions: {nonsense: 1}\n")
    Path("card.yaml").write_text("provider: openvino\noptions: {device_type: GPU.7}\n")
    predicted = {
        name: [[one.labels[0], one.scores[0]] for one in predict("bundle", ["images"], provider=name, threads=1)]
        for name in ("cpu", "openvino")
    }
    table = benchmark("images", config="benchmark.yaml", out="table")
    np.savez("direct.npz", **directly(pixels))
    answer = {
        "results": [to_json(one) for one in results],
        "misplaced": refused(**det),
        "uncompiled": refused(**det | {"models": "pool.onnx"}),
        "allowed": to_json(evaluate_classifiers(**det, data="images", out="allowed", allow_fallback=True)[0].setup),
        "bad": refused(provider="bad.yaml"),
        "card": refused(provider="card.yaml"),
        "cuda": refused(provider="cuda"),
        "predicted": predicted,
        "rows": [to_json(row) for row in table.rows],
    }
    Path("answer.json").write_text(json.dumps(answer))


if __name__ == "__main__":
    main()
