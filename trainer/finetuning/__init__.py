"""The whole network: from the head to the backbone, and from scratch.

`settings` says what there is to choose, `start` what a network starts from, `fit` trains it, `writing` makes the run.
"""
