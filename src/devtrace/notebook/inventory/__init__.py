"""What a notebook's names hold, by device."""
