import pytest
import torch

from headsmith.models.heads import build_head

KINDS = {
    "linear": ("linear", {}),
    "standard": ("norm_linear", {"norm": "standard"}),
    "layer": ("norm_linear", {"norm": "layer"}),
    "unit": ("norm_linear", {"norm": "unit"}),
    "cosine": ("cosine", {}),
    "mlp": ("mlp", {"hidden": 9}),
}


@pytest.fixture(params=KINDS)
def random_head(request):
    """A function: sizes to a float64 head of each kind with random parameters and statistics."""

    def make(in_features=7, num_classes=5, bank=None, seed=0):
        kind, options = KINDS[request.param]
        head = build_head(kind, in_features, num_classes, bank=bank, **options).double()
        generator = torch.Generator().manual_seed(seed)
        for parameter in head.parameters():
            parameter.data += 0.3 * torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
        if options.get("norm") == "standard":
            statistics = torch.rand(2, in_features, generator=generator, dtype=torch.float64)
            head.fit_statistics(4 * statistics[0] - 2, statistics[1] + 0.1)
        return head

    return make
