"""The trace for and from other tools, and two traces compared."""
