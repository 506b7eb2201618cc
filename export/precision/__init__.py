"""Files of lower precision, and the gates that they must pass."""
