"""Runs for every op: the dispatch mode, and the recorder that it fills."""
