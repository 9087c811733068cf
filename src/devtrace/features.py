"""What features offer, by point: the kernel asks here, and names none of them.

    for slug, load in offers("cost rule").items(): ...      find("command", "diff")

A feature is a folder beside this file that stands in FEATURES; its `feature.py` has a table FEATURE. Without its folder
and its name here, what it gave is absent. Another package adds a table under the entry point group `devtrace.features`.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any, Final, Literal

from devtrace.words.errors import UsageError, named

FEATURES: Final = (
    "simulation", "costs", "dtypes", "memory", "jobs", "budget", "fixing", "explaining", "interchange", "drawing",
)  # fmt: skip
"""In the order in which they are asked."""

Point = Literal[
    "observer",  # of a recording: a class as `recording.finish.observer.Observer`, by the part of torch that it needs
    "sampler",  # decides which steps are recorded: `recording.sampler.Sampler`
    "error rule",  # by slug: explains an op that raised
    "cost rule",  # by slug: finds what costs time
    "job rule",  # by slug: finds what only all ranks together show
    "error kind",  # by trait: reads what an error's text says of it
    "fact",  # by name: a class of what an observer of a recording noted, which a saved case has objects of
    "cause",  # by trait: why a tensor is odd
    "strategy",  # by the strategy that it follows: ways to make an edit
    "replay",  # by trait: runs the recorded ops once more
    "findings",  # changes the findings of one trace
    "report",  # adds to a report
    "report part",  # sentences at the end of a report
    "picture",  # a static picture for html
    "figure",  # a plotly figure
    "export",  # a trace in another form
    "loader",  # reads several files
    "devices",  # pretended ones: `runtime.simulated.Simulation`, made from what is asked for
    "function",  # a public name of `devtrace`
    "command",  # of the command line: `cli.parser.Command`
    "way",  # another way to run a program: adds its flag to `devtrace run`
    "trial",  # of the edits of a report where it was made: a test that runs again
    "ranks",  # of a job that was launched: the report of all
    "inventory",  # of a notebook's names, with what devices hold beside
    "notebook",  # what a notebook's session has beside tracing: `notebook.companion.Companion`, by its subcommand
]
Feature = Mapping[Point, Mapping[str, str]]
"""By point and key the name of an object, `module:name`, that is imported when it is asked for."""

_RULES: Final = ("error rule", "cost rule", "job rule")
"""Points that other packages may add to: who reads the list of all packages pays for that."""


@cache
def offers(point: Point) -> Mapping[str, Callable[[], Any]]:
    """Return what loads each offer at a point, by its key."""
    tables = [*_ours(), *(_of_packages()[0] if point in _RULES else ())]
    return {key: partial(_load, name) for table in tables for key, name in table.get(point, {}).items()}


def offered(point: Point) -> dict[str, Any]:
    """Return all offers at a point, loaded."""
    return {key: load() for key, load in offers(point).items()}


def find(point: Point, key: str) -> Any:
    """Return one offer; None where no feature makes it."""
    load = offers(point).get(key)
    return None if load is None else load()


def need(point: Point, key: str) -> Any:
    """Return one offer; where no feature makes it, raise a sentence that says so."""
    found = find(point, key)
    if found is None:
        raise UsageError.of("feature-absent", name=key)
    return found


def faults() -> Mapping[str, str]:
    """Return why the table of another package cannot be used, by the name of its entry point."""
    return _of_packages()[1]


def only_rules(table: Feature) -> Feature:
    """Return the table of another package; refuse a point that is not open to it."""
    for point in table:
        if point not in _RULES:
            raise UsageError.of("feature-point", point=point, points=_RULES)
    return {point: dict(rules) for point, rules in table.items()}


def _ours() -> Iterator[Feature]:
    for name in FEATURES:
        yield import_module(f"devtrace.{name}.feature").FEATURE


@cache
def _of_packages() -> tuple[list[Feature], dict[str, str]]:
    """Return the tables of other packages, and why one cannot be used, by the name of its entry point."""
    tables, faults = list[Feature](), dict[str, str]()
    for entry in entry_points(group="devtrace.features"):
        try:
            tables.append(only_rules(entry.load()))
        except Exception as fault:  # noqa: BLE001 (it is of another package: ours go on)
            faults[entry.name] = named(fault)
    return tables, faults


@cache
def _load(name: str) -> Any:
    module, _, attribute = name.partition(":")
    return getattr(import_module(module), attribute)
