"""What would spoil a training: a look at every row of a feature set."""
