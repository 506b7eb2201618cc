"""Settings that others published, by name."""

from .presets import Preset, load_preset, preset, preset_names

__all__ = ["Preset", "load_preset", "preset", "preset_names"]
