"""Labelled images from folders and data sets, and their batches."""
