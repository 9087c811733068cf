"""host-sync: the host waits for a device to read a value.

Every line is counted. What repeats with the steps of a loop is a warning, however it is written and wherever the value
goes. It is none where the host goes on by it: the end of a loop, a token or an action that was picked, a branch of a
package's. What a package reads while nothing trains is a note too: its caller cannot spare it, unless it reads element
after element, or makes text of a tensor that nobody prints.

    total += loss.item()            # bad: the CPU waits in each step
    total += loss.detach()          # good: `total.item()` once, below the loop
"""

import ast
from collections.abc import Iterator, Sequence

from devtrace.costs import reads
from devtrace.costs.cost_findings import Needless, finding, findings
from devtrace.costs.decisions import comes_back, decides_the_loop, is_gone_on_by
from devtrace.costs.edits_of_reads import read_after_loop
from devtrace.costs.elements import of_elements, of_masks
from devtrace.costs.factories import is_drawn_from_nothing
from devtrace.costs.loops import loops_around
from devtrace.costs.repeated_costs import OFTEN, STEPS, Habit
from devtrace.costs.round_trips import of_written_back
from devtrace.diagnosis.evidence.source_text import brief
from devtrace.diagnosis.evidence.trace_queries import SourceNode, TraceQueries
from devtrace.diagnosis.findings import Finding
from devtrace.diagnosis.ledger import Tally
from devtrace.source.flow import LOOPS
from devtrace.words.catalogue import sentence


def host_syncs(queries: TraceQueries, tally: Tally) -> Iterator[Finding]:
    return findings(queries, tally, "syncs", _needless, _finding)


def _finding(habit: Habit, needless: Sequence[Needless], remark: str) -> Finding:
    """Word the waits of one line."""
    queries, code = habit.queries, brief(reads.expression(habit.queries, habit.line))
    is_asked_for = bool(habit.ops) and all(reads.is_asked_for(queries, op) for op in habit.ops)
    unneeded = needless[0].why if needless else sentence("host-sync.to-read")
    is_paced = any(each.habit.pace.is_of_each_step for each in needless)
    steps = sum(each.habit.pace.steps for each in needless)
    message = sentence(
        "host-sync.message",
        what=sentence("host-sync.code", code=code) if code else sentence("host-sync.line"),
        device=sentence("host-sync.devices", devices=habit.devices) if habit.devices else sentence("host-sync.device"),
        count=habit.count,
        often=sentence("host-sync.once" if habit.count == steps else "host-sync.each") if is_paced else "",
        purpose=sentence("host-sync.as-asked") if is_asked_for else unneeded,
    )
    return finding("host-sync", habit, needless, message + remark, None)


def _needless(parts: list[Habit]) -> list[Needless]:
    """Return the waits of each step that nothing needs then: a warning where the loop is long and waits often."""
    singly = [of_elements(part) or of_written_back(part) for part in parts]
    others = [part for part, found in zip(parts, singly, strict=True) if found is None]
    needless = [part for part in others if part.found is not None and _is_needless(part, part.found)]
    is_often = sum(part.count for part in needless) >= OFTEN
    return [*filter(None, singly), *(_advised(part, is_often=is_often) for part in needless)]


def _advised(habit: Habit, *, is_often: bool) -> Needless:
    assert habit.found is not None
    fix = None
    if is_drawn_from_nothing(habit):
        why, help = reads.worded("host-sync.to-draw", "host-sync.to-draw.help")
    else:
        why, help = of_masks(habit) or reads.purpose(habit.queries, habit.found, habit.ops[0])
        fix = read_after_loop(habit)
    help, edits = (fix.help, fix.edits) if fix is not None else (help, ())
    is_warning = is_often and habit.pace.steps >= STEPS
    return Needless(habit, why, help, edits=edits, severity="warning" if is_warning else "note")


def _is_needless(habit: Habit, found: SourceNode) -> bool:
    """Return whether the waits of a line are of each step, and nothing needs them then."""
    queries, first = habit.queries, habit.ops[0]
    has_argument = habit.is_of_the_user and reads.spared_by(queries, found, first) is not None
    if reads.is_asked_for(queries, first) or not (has_argument or reads.is_of_the_line(queries, found, first)):
        return False
    if not habit.pace.is_of_each_step or not _is_in_a_loop(habit):
        return False
    if is_drawn_from_nothing(habit):
        return True
    if any(reads.is_often(test, habit) for test in (reads.is_a_choice, reads.was_read_before, reads.is_for_the_host)):
        return False
    if comes_back(found):
        return False
    trains_in_it = habit.pace.trains and habit.count <= habit.pace.steps  # more often it is a loop within a step
    is_spared = trains_in_it or not decides_the_loop(found)
    return is_spared and not (queries.package(habit.line) and _is_needed_by_the_package(habit, found))


def _is_in_a_loop(habit: Habit) -> bool:
    """Return whether the user's line waits itself, not a loop inside torch, or runs in each step."""
    found = habit.queries.source_node(habit.site)
    is_torchs = found is not None and reads.is_within_torch(habit.queries, found, habit.ops[0])
    return (habit.is_of_the_user and not is_torchs) or habit.runs_again


def _is_needed_by_the_package(habit: Habit, found: SourceNode) -> bool:
    """Return whether a package's line reads what its caller cannot spare.

    It asks for a branch or a size, not for each of many things in a step, or no step of the caller's trains.
    """
    if reads.is_written(habit.queries, habit.ops[0]):
        return reads.is_printed(found)
    is_asked = is_gone_on_by(habit.queries, found, habit.ops[0])
    asks_each = habit.count > habit.pace.steps and bool(loops_around(found, (*LOOPS, ast.comprehension)))
    return (is_asked and not asks_each) or not habit.pace.trains or habit.trains_alone
