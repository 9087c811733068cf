"""Tells outermost calls of modules apart: by the module, and by all calls that lead to its line."""

from collections.abc import Hashable
from typing import Any

from devtrace.recording.columns import sites
from devtrace.recording.context.module_tree import is_training


def of_call(module: Any, frame: Any) -> tuple[Hashable, ...]:
    """Return the event of a call that comes from a frame."""
    while frame.f_back is not None and sites.files[frame.f_code.co_filename] not in (sites.USER, sites.LIBRARY):
        frame = frame.f_back
    return id(module), is_training(module), _way_to(frame)


def _way_to(frame: Any) -> int:
    """Return a number for the calls that lead to a frame: the loop of a function is another one where that is called.

    A function that calls itself counts once, however deep.
    """
    calls = set()
    while frame is not None:
        calls.add((id(frame.f_code), frame.f_lasti))
        frame = frame.f_back
    return hash(frozenset(calls))
