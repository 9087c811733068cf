"""Notebooks: their text, runs in forks that go on from one another, and the fix of one that is open in a page."""
