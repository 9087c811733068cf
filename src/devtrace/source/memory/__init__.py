"""A device's memory at the moment when an allocation failed."""
