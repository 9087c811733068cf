"""What devtrace says, apart from diagnosis: errors by slug, and the formatting of text, bytes and times."""
