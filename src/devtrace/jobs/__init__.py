"""Jobs of several ranks: their traces as one, and what only the ranks together show."""
