"""What the tests of messages about the input of losses share."""

import torch

LOGITS = torch.randn(4, 7, generator=torch.Generator().manual_seed(0))


LABELS = torch.tensor([0, 1, 2, 3])


NAN = float("nan")


def assert_message(excinfo, *parts: str):
    message = str(excinfo.value)
    assert "\n" not in message
    for part in parts:
        assert part in message
