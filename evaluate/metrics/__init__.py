"""What is measured from logits and true labels, row by row and over all rows."""
