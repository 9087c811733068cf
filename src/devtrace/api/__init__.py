"""What a program calls: the doors behind the public names."""
