"""Which classifier to deploy: many backbones, one leaderboard."""

from ...core.lazy_names import lazy_names

# The names and where they are: __init__.pyi. What is heavy is imported when a name is first used.
__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
