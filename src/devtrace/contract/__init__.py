"""What programs read of a report, one finding at a time: JSON, its compact form, SARIF, annotations, the exit code."""
