"""Explains a device error of a program that nobody recorded: from its traceback, the live objects and the source."""
