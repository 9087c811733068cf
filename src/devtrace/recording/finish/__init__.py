"""Makes a trace: ids become rows, names and lines are found."""
