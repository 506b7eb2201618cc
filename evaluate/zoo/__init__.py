"""Which classifiers are evaluated: bundles, files of any origin, networks of timm and torchvision, lists of these."""

from .candidate import Candidate, Failed, Published, Setup
from .finding import find_candidates
from .names import match_names
from .opening import open_candidate
from .probe import SAMPLE, power, probe
from .setups import other_crops

__all__ = [
    "SAMPLE",
    "Candidate",
    "Failed",
    "Published",
    "Setup",
    "find_candidates",
    "match_names",
    "open_candidate",
    "other_crops",
    "power",
    "probe",
]
