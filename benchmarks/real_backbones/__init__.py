"""Pretrained networks that packages of PyPI carry, compared on drawings of Debian's clip art; see `__main__`."""
