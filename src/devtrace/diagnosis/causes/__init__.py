"""One cause a file: why a tensor is not where the computation is."""
