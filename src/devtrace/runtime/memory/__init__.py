"""Memory of a device: how much one is asked to have, and who knows what lives there."""
