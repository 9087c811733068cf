"""One rule of costs a file."""
