"""Keeps a long recording cheap: what repeats is recorded now and then, and counted in between."""
