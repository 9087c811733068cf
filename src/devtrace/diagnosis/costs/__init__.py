"""What a line costs in each step, and what to do about it."""
