"""A recording that is looked at from another thread while it runs."""
