"""Which classifiers are evaluated: bundles, files of any origin, networks of timm and torchvision, lists of these."""

from .candidate import Candidate, Failed, Published, Setup
from .find_models import find_candidates
from .opening import open_candidate
from .sanity_probe import SAMPLE, power, probe
from .setups import other_crops

__all__ = [
    "SAMPLE",
    "Candidate",
    "Failed",
    "Published",
    "Setup",
    "find_candidates",
    "open_candidate",
    "other_crops",
    "power",
    "probe",
]
