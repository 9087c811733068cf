"""What a notebook uses: magics, cells, the panel and the live view."""
