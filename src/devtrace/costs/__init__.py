"""What a program pays for devices in each step, and what to do about it: syncs, copies, work left on the CPU."""
