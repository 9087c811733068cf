"""From the trace to findings: rules, causes, fixes, and the evidence that they read."""
