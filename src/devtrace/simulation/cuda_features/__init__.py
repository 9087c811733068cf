"""What programs ask of CUDA beyond what an operator computes: other libraries, streams, determinism, copies by hand."""
