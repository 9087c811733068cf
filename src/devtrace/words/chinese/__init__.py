"""All sentences in Chinese. PyTorch's own terms stay English where Chinese readers use them so."""
