"""From what was recorded to a trace: ids become rows, names and lines are found."""
