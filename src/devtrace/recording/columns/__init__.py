"""What is kept of ops, as integers: their columns, tensors, copies, source lines and threads."""
