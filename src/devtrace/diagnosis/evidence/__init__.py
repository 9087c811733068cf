"""What rules, causes and fixes ask of a trace, of a snapshot and of source code."""
