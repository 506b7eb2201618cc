"""The files that a classifier is exported to: what writes each, and what opens it again."""
