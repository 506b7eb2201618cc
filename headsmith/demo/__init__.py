"""The embedded demo: a labelled set drawn from fonts, two heads, their exported files, one table."""
