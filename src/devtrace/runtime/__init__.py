"""Touches the process: patches, mode stacks, import hooks, tracebacks, requirements."""
