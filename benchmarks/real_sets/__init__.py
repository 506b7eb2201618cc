"""Real classification sets from what package registries carry, as feature sets; see `__main__`."""
