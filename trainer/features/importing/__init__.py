"""Features that exist already, in whatever files people keep them."""

from .importing import import_features

__all__ = ["import_features"]
