"""Runs a program again and again on simulated devices, each time with one more fix, until it ends."""
