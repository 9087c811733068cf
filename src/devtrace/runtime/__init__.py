"""What touches the process: patches, mode stacks, import hooks, tracebacks, and what the environment must have."""
