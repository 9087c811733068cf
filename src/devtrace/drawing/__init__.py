"""Static pictures of a trace; they know nothing of findings."""
