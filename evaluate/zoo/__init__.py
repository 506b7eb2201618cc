"""Which classifiers are evaluated: bundles, files of any origin, networks of timm and torchvision, lists of these."""

from .candidate import Candidate, Failed, Published, Setup
from .finding import find_candidates
from .opening import open_candidate

__all__ = ["Candidate", "Failed", "Published", "Setup", "find_candidates", "open_candidate"]
