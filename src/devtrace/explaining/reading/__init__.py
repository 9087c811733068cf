"""Reads from source code and live objects how values came to be; runs none of it."""
