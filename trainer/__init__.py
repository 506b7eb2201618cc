"""Features, losses, and the training of heads."""
