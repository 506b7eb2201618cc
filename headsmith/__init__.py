"""Train classification heads on frozen backbones, export them, and measure the exported file.

The names below load what they need on first use, so that importing headsmith costs nothing. `headsmith.export` and
`headsmith.evaluate` are the sub-packages; the functions in them are called `export_classifier` and
`evaluate_classifiers`.
"""

from .core.lazy_names import lazy_names
from .core.version import __version__ as __version__

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__, beside=("models", "trainer", "export", "evaluate"))
