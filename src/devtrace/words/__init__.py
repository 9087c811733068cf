"""Errors by slug, and the formatting of text, bytes and times."""
