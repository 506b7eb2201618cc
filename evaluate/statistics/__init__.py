"""Whether a difference between classifiers is real."""
