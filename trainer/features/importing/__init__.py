"""Features that exist already, in whatever files people keep them."""
