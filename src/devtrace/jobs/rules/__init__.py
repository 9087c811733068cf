"""One rule of jobs a file."""
