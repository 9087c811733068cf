"""One strategy a file: which change of source mends a cause."""
