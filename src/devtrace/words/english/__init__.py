"""All sentences in English."""
