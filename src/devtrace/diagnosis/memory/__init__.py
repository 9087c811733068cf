"""Out of memory: who holds it, which line keeps it, what lets go of it."""
