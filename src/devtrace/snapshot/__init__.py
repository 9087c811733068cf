"""What was there when a program ended, as stand-ins: they keep nothing of it alive, run nothing, and can be saved."""
