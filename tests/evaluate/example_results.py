"""A made-up result of a model on 60 images of six classes."""

import numpy as np

from headsmith.evaluate.held_out_record import HeldOutRecord, HeldOutSource
from headsmith.evaluate.measuring.speed_figures import Latency, Speed
from headsmith.evaluate.metrics import Scorer, class_table, confused_pairs, reliability, selective, summarize
from headsmith.evaluate.result import EvalResult, EvaluationSetup
from headsmith.evaluate.results import Predictions

NAMES = ["ant", "bee", "cow", "dog", "<b>emu</b>", "fox"]


DATA = HeldOutRecord("photos", "f" * 64, NAMES, 60, HeldOutSource("photos"), [])


def made_up(name: str, seed: int, strength: float = 1.0, groups: bool = False) -> tuple[EvalResult, Predictions]:
    random = np.random.default_rng(seed)
    labels = np.arange(60) % 6
    logits = random.normal(size=(60, 6)).astype(np.float32)
    logits[np.arange(60), labels] += strength
    scorer = Scorer(6)
    scorer.add(logits, labels)
    scores = scorer.scores()
    right = scores.correct()
    setup = EvaluationSetup(
        file="model.onnx", bytes=1000, parameters=5_288_548, image_size=224, crop_pct=0.875, interpolation="bicubic",
        preprocessing=None, provider="CPUExecutionProvider", provider_name="cpu", provider_options={},
        nodes={"CPUExecutionProvider": 9},
        threads=1, runtime="onnxruntime 1.31", device="cpu", batch_size=64, data=DATA.name,
        data_sha256=DATA.fingerprint, model_sha256=str(seed), labels_sha256="", preprocessing_sha256="",
        versions={"python": "3.11"}, created="2026-01-01T00:00:00+00:00",
    )  # fmt: skip
    speed = Speed(0.1, 0.2, 100.0, 50.0, 80.0, Latency(1.0, 2.0, 3.0, 20, 0.9), {1: 90.0, 8: 110.0}, 10**8, None)
    result = EvalResult(
        key=f"{name}-{seed}", model=name, source=f"{name}.onnx", labels=NAMES, summary=summarize(scores), subset=None,
        groups={}, classes=class_table(scores), confused=confused_pairs(scores),
        reliability=reliability(scores.confidences, right), selective=selective(scores.confidences, right),
        speed=speed, setup=setup, verdict=None, against=None, warnings=[], not_finite=0, unreadable=[], duplicates=0,
    )  # fmt: skip
    ids = [f"{number}.png" for number in range(60)]
    return result, Predictions(ids, scores, ["fog", "snow"] * 30 if groups else None)
