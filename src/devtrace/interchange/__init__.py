"""The trace for other tools, and two traces compared."""
