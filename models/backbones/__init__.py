"""Which backbones there are: names, patterns, lists, and what is known of each without loading it."""
