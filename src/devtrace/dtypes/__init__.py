"""Errors of dtypes: the odd tensor, its cause and its cast; autocast regions."""
