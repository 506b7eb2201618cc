"""The folder of an exported classifier: its files, labels, manifest and card, on disk and on a hub."""
