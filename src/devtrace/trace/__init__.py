"""The trace: its tables, and how they are filled, written, read, checked, cut and merged."""

import sys

from devtrace.words.errors import TakenForFunction

sys.modules[__name__].__class__ = TakenForFunction
