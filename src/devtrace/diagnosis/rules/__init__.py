"""One rule a file: what counts as a finding."""
