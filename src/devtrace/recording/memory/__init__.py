"""Who holds a device's memory, asked once: where an allocation has failed, before the frames unwind."""
