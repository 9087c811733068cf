"""One rule of memory a file."""
