"""The kernel's side of the sidebar."""
