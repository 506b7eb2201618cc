"""Deploy a trained head: the classifier as one file, its bundle, its runtime, and the proof that both agree."""

import lazy_loader

# The names and where they are: __init__.pyi. What is heavy is imported when a name is first used.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
