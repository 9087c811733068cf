"""Recordings that outgrow their limit: repetitions are counted and forgotten."""
