"""Reading source code and live objects without running any of it."""
