"""headsmith."""
