"""Memory of simulated devices: counted as CUDA's caching allocator counts it, and refused where it would be."""
