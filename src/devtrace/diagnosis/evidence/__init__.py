"""What rules, causes and fixes ask of a trace, of live objects and of source code."""
