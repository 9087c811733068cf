"""Notebooks: their text, one run in a kernel, and the fix of one that is open in a page."""
