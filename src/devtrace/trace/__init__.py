"""The trace: its tables, and how they are filled, written, read, checked, cut and merged."""
