"""Folds recordings that outgrow their limit: repetitions are counted and forgotten."""
