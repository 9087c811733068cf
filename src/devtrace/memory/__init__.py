"""Who holds the memory of a device: when it ends, when it grows, at its peak."""
