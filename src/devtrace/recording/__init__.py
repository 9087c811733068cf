"""Everything between a running PyTorch program and the trace."""
