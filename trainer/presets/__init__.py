"""Settings by name: published ones, and what a sweep without a file tries."""

from .presets import Preset, load_preset, preset, preset_names, preset_text

__all__ = ["Preset", "load_preset", "preset", "preset_names", "preset_text"]
