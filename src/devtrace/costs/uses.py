"""What a program does with a value that a line reads: by the source around it.

    share = loss.item() / 2             # the code that reads it,
    average.add_(x, alpha=share)        # and a use of what that gives: a "factor" of what the device computes

A value that code decides by, or needs as a number, has to be on the host: a size, a rate, the end of a loop.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from itertools import pairwise, takewhile
from typing import Final, NamedTuple

from devtrace.diagnosis.evidence.trace_queries import SourceNode
from devtrace.source.defuse import binds, loops_around, path_of, paths_in, rounds, shared_names
from devtrace.source.matching import (
    alone,
    assigned_names,
    called_name,
    calls_in,
    is_read,
    listed,
    match_code,
    names_in,
    nodes_of,
    owner_of,
    same_code,
    variable,
)
from devtrace.source.parsing import Source, own_name, parameters
from devtrace.source.vocabulary import (
    BOUNDS,
    CHECKS_FLOATS,
    EXTENDS,
    FACTORS,
    OF_VALUES,
    TAKES_VALUES,
    VIEWS,
    changes_itself,
    full_name,
    is_factory,
    is_mixing,
    package,
)
from devtrace.words.text_format import one_line

_ONE_MORE: Final = ("$n += 1", "$n = $n + 1")
_NOT_FINITE: Final = re.compile(r"float\(\W*(nan|inf|infinity)\W*\)", re.IGNORECASE)


# The variables of a line's function.


def matches(node: ast.AST | None, *patterns: str) -> dict[str, ast.expr] | None:
    """Return what fills the holes of the first pattern that code is written as; None if it is none of them."""
    matched = (match_code(pattern, node) for pattern in patterns)
    return next((holes for holes in matched if holes is not None), None)


def uses_of(place: SourceNode, name: str) -> list[ast.Name] | None:
    """Return the uses of a variable in the function around a place, in order; None if other functions see it too."""
    body = place.source.function(place.node) or place.source.tree
    uses = [node for node in nodes_of(ast.Name, body) if node.id == name]
    return sorted(uses, key=place.source.span) if name not in shared_names(body) else None


def results_of(place: SourceNode) -> list[ast.AST]:
    """Return `loss.item()` and the uses of `share`, for `share = loss.item() / 2`: the code for a value that is read.

    Of `set_rate(optimizer, share)` also the uses of `rate` in `def set_rate(optimizer, rate)` of the same file.
    """
    results = [use for name in binds(place.statement) for use in uses_of(place, name) or () if is_read(use)]
    values = (place.node, *results)
    arguments = (use for value in values for use in uses(place.source, value) if use.role == "argument")
    return [*values, *(name for use in arguments for name in _uses_as_parameter(place.source, use))]


def _uses_as_parameter(source: Source, use: Use) -> list[ast.Name]:
    """Return the uses of `rate` in `def set_rate(optimizer, rate)` for the argument `x` of `set_rate(optimizer, x)`."""
    call = use.outer
    functions = [node for node in nodes_of(ast.FunctionDef, source.tree) if node.name == called_name(call)]
    if not functions or not isinstance(call, ast.Call) or not variable(call.func):
        return []
    pairs = [*zip(call.args, parameters(functions[0]), strict=False), *((word, word.arg) for word in call.keywords)]
    names = [name for argument, name in pairs if argument is use.inner]
    return [node for node in nodes_of(ast.Name, *functions[0].body) if node.id in names and is_read(node)]


def updated(statement: ast.stmt) -> tuple[ast.expr, ast.operator, ast.expr] | None:
    """Return the variable, the operator and what is added, of `total += x` and of `total = total + x`."""
    match statement:
        case ast.AugAssign(target=target, op=op, value=value):
            return target, op, value
        case ast.Assign(targets=[target], value=ast.BinOp(left=left, op=op, right=right)):
            other = right if same_code(target, left) else left if same_code(target, right) else None
            return (target, op, other) if other is not None else None
    return None


def gathered_in(place: SourceNode) -> str:
    """Return the list that code appends a value to: `self.losses` of `self.losses.append(loss.item())`."""
    parent = place.source.parent(place.node)
    append = match_code("$list.append(...)", parent) if alone(place.statement) is not None else None
    target, _, _ = updated(place.statement) or (None, None, None)
    if target is not None and type(parent) is ast.List:
        return one_line(place.source.segment(target))  # `losses += [loss.item()]`
    return one_line(place.source.segment(append["list"])) if append is not None else ""


def counter(place: SourceNode, read: ast.AST) -> str:
    """Return the variable that counts the rounds in which code is read, or "": `i` of `for i, x in enumerate(loader)`.

    An outer loop's variable counts them only where the inner loop goes through what each of its rounds has made.
    """
    for loop in place.loops:
        iterable, target, body = getattr(loop, "iter", None), getattr(loop, "target", None), getattr(loop, "body", ())
        counts = iterable is not None and not {"enumerate", "range"}.isdisjoint(map(called_name, calls_in(iterable)))
        if target is not None and counts:
            return variable(listed(target)[0])
        increments = (matches(statement, *_ONE_MORE) for statement in body)
        if name := next((variable(holes["n"]) for holes in increments if holes is not None), ""):
            return name
        of_a_round = names_in(target) - set(assigned_names(*body)) if target is not None else set()
        if not names_in(read) <= of_a_round:
            return ""
    function = place.source.function(place.node)
    return "step" if function is not None and "step" in parameters(function) else ""


# As what code uses a value.


class Use(NamedTuple):
    """One step outwards from a value, to the code that takes it: `alpha=share`, then `average.add_(x, alpha=share)`."""

    inner: ast.AST
    outer: ast.AST
    role: str
    """What `inner` is to `outer`, see `_role`; empty where it is passed on as the number that it is."""


def uses(source: Source, value: ast.AST) -> Iterator[Use]:
    """Yield each step outwards from a value to its statement."""
    around = source.up_to(value, source.statement(value))
    return (Use(inner, outer, _role(inner, outer)) for inner, outer in pairwise(around))


def _role(inner: ast.AST, outer: ast.AST) -> str:
    """Return what `n` is to the code around it: in `x[:n]` a "size", in `n + 1` an "operand", in `-n` nothing yet."""
    name = called_name(outer)
    match outer:
        case ast.Slice():
            return "size"
        case ast.Subscript() | ast.Compare():
            return "item"
        case ast.BinOp():
            return "operand"
        case ast.UnaryOp() | ast.keyword():
            return ""
        case ast.Call() if name in TAKES_VALUES:
            return "size" if name == "range" else ""
        case ast.Call() if _is_put_in(outer, inner):
            return "content"
        case ast.Call() if getattr(inner, "arg", "") in FACTORS and is_mixing(name):
            return "factor"
        case ast.Call() if _may_be_tensor(outer, inner):
            return "tensor"
        case ast.Call():
            return "size" if is_factory(name) or (name in VIEWS and inner is not outer.func) else "argument"
    return "part"


def _is_put_in(call: ast.Call, argument: ast.AST) -> bool:
    """Return whether a call puts an argument into a tensor: `torch.tensor([x])`, `torch.full((2,), x)`."""
    name = called_name(call)
    if name.removeprefix("new_").removesuffix("_like") == "full":
        return argument in call.args[1:] or getattr(argument, "arg", "") == "fill_value"
    return name in OF_VALUES or name.endswith("Tensor")


def _may_be_tensor(call: ast.Call, argument: ast.AST) -> bool:
    """Return whether a function takes a tensor as well where it is given a number: `p.mul_(x)`, `y.clamp(max=x)`."""
    if called_name(call).removesuffix("_") not in BOUNDS:
        return is_mixing(called_name(call)) and not hasattr(argument, "arg")
    bounds = (*call.args, *(word.value for word in call.keywords))
    return all(type(getattr(bound, "operand", bound)) is not ast.Constant for bound in bounds)  # all tensors, or none


def _first_uses(place: SourceNode, *passing: str) -> list[Use]:
    """Return the first use of the value and of each of its results; steps with a role of `passing` are no uses."""
    by_result = ([use for use in uses(place.source, code) if use.role not in passing] for code in results_of(place))
    return [uses_of_result[0] for uses_of_result in by_result if uses_of_result]


def is_bound(place: SourceNode) -> bool:
    """Return whether the function goes on by a value as a size or a bound: `x[:n]`, `range(n)`, `torch.zeros(n)`."""
    return any(use.role == "size" for use in _first_uses(place, "", "operand", "part"))


def factor_of(place: SourceNode) -> dict[str, str] | None:
    """Return the argument by which the value scales what a device computes: `alpha` of `x.add_(y, alpha=value)`."""
    steps = (use for result in results_of(place) for use in uses(place.source, result))
    words = [use.inner.arg for use in steps if use.role == "factor"]  # type: ignore[attr-defined]
    return {"argument": words[0]} if words else None


def taken_by(place: SourceNode) -> dict[str, str] | None:
    """Return the function of torch's that takes the value as an argument: `clip_grad_norm_(..., x)`."""
    takers = [use.outer for use in _first_uses(place, "", "operand") if use.role != "content"]
    calls = [taker for taker in takers if isinstance(taker, ast.Call)]
    names = [called_name(call) for call in calls if package(call.func, place.source) == "torch"]
    return {"function": names[0]} if names else None


def is_rate(place: SourceNode) -> bool:
    """Return whether an optimizer gets the value as its rate: `group["lr"] = x`, `scheduler.step(x)`."""
    statements = [place.source.statement(use) for use in results_of(place)]
    return any(
        match_code('$group["lr"] = $value', statement) or match_code("$scheduler.step($value)", alone(statement))
        for statement in statements
    )


def is_tensor_there(source: Source, value: ast.AST) -> str:
    """Return "return" for `y[0] = value`, "use" for `y * value`: a tensor would do. Else "": it has to be a number."""
    steps, assignment = list(uses(source, value)), match_code("$tensor[$at] = $value", source.statement(value))
    stored = assignment["value"] if assignment is not None else None
    is_stored = isinstance(stored, PASSED_ON) and stored in source.ancestors(value)
    if is_stored or any(use.role == "content" for use in steps):
        return "return"
    needs_number = any(isinstance(use.inner, ast.keyword | ast.Slice) and use.role != "tensor" for use in steps)
    return "use" if not needs_number and any(use.role in ("operand", "tensor") for use in steps) else ""


PASSED_ON: Final = (ast.Name, ast.Tuple, ast.List, ast.BinOp, ast.Constant, ast.Starred)


def are_taken_one_by_one(place: SourceNode) -> bool:
    """Return whether a loop goes through the values that code reads, or takes them by its index, one at a time."""
    source, loop = place.source, next(iter(place.loops), None)
    for use in results_of(place):
        # `values.tolist()` of `for value in values.tolist()`
        chain = [use, *takewhile(lambda code: called_name(code) or getattr(code, "attr", ""), source.ancestors(use))]
        item = match_code("$values[$at]", source.parent(use))
        index = names_in(item["at"]) if item is not None and item["values"] is use else set()
        is_taken = any(inner.iter in chain or index & names_in(inner.target) for inner in rounds(source, use))
        if is_taken and (loop is None or loop in source.ancestors(use)):
            return True
    return False


# What code decides by a value.


def _conditions_in(source: Source, code: ast.AST) -> Iterator[tuple[ast.expr, bool]]:
    """Yield the conditions in code, each with whether it ends a loop, or may answer if a loop is to end."""
    for node in ast.walk(code):
        if isinstance(node, ast.If | ast.While | ast.IfExp):
            last = node.body[-1] if isinstance(node, ast.If) else None
            leaves_loop = isinstance(last, ast.Break | ast.Return) and loops_around(source, node) != []
            answers = matches(last, "return True", "return False") is not None
            yield node.test, isinstance(node, ast.While) or leaves_loop or answers
        elif isinstance(node, ast.Compare | ast.UnaryOp | ast.Call) and is_truth(node):
            yield node, isinstance(source.parent(node), ast.Return)


def is_truth(node: ast.AST) -> bool:
    return isinstance(node, ast.Compare) or matches(node, "not $x", "bool($x)") is not None


def decides_the_loop(place: SourceNode) -> bool:
    """Return whether the value decides how long a loop goes on. A guard against NaN or infinity decides nothing."""
    statement = place.statement
    names = set(assigned_names(statement)) if isinstance(statement, ast.Assign | ast.AnnAssign) else set()
    conditions = _conditions_in(place.source, place.function or place.source.tree)
    tests = (test for test, ends_loop in conditions if ends_loop and not _checks_floats(test, place))
    return any(place.node in ast.walk(test) or not names.isdisjoint(names_in(test)) for test in tests)


def decides_later(place: SourceNode) -> bool:
    """Return whether the loop compares what the statement gets, or branches by it: `if value < best`."""
    names = set(assigned_names(place.statement))
    tests = (test for loop in place.loops[:1] for test, _ in _conditions_in(place.source, loop))
    return any(not names.isdisjoint(names_in(test)) for test in tests)


def _checks_floats(test: ast.expr, place: SourceNode) -> bool:
    """Return whether a test asks for NaN or infinity: `isnan(x)`, `x != x`, `x == float("inf")`, `x < -math.inf`."""
    parts = list(nodes_of(ast.expr, test))
    is_named = any(full_name(part, place.source).endswith((".inf", ".nan")) for part in parts)
    is_written = any(_NOT_FINITE.fullmatch(place.source.segment(part)) for part in parts)
    is_checked = is_named or is_written or any(called_name(part) in CHECKS_FLOATS for part in parts)
    sides = ((compare.left, right) for compare in nodes_of(ast.Compare, test) for right in compare.comparators)
    return is_checked or any(same_code(left, right) for left, right in sides)


def is_gone_on_by(place: SourceNode, *, is_number: bool) -> bool:
    """Return whether a value of the step picks what the code does next, as a size or an index does (`is_number`).

    A guard that only raises picks nothing, and state that the object itself keeps need not be asked for each time.
    """
    node, statement, condition = place.node, place.statement, place.node if is_number else None
    for code in (statement, *reversed(list(place.source.up_to(node, statement)))):  # from the outside to the value
        is_tested = isinstance(code, ast.If | ast.While | ast.IfExp) and (code is node or node in ast.walk(code.test))
        if is_tested or isinstance(code, ast.BoolOp) or is_truth(code):
            condition = getattr(code, "test", code)  # the innermost counts
    names = nodes_of(ast.Name, condition) if condition is not None else ()
    not_of_the_step = (own_name(place.source, node), "bool", "int")
    is_of_the_step = any(not full_name(name, place.source) for name in names if name.id not in not_of_the_step)
    raises = isinstance(statement, ast.If) and all(isinstance(code, ast.Raise) for code in statement.body)
    is_guard = isinstance(statement, ast.Assert) or (raises and not statement.orelse)  # type: ignore[attr-defined]
    return is_of_the_step and not is_guard


def comes_back(place: SourceNode) -> bool:
    """Return whether the value comes back in the next round: `state = env.step(action.item())`.

    It is passed to code outside torch, whose result, or object, the next round reads.
    """
    loop = next(iter(place.loops), None)
    uses_here = (use for use in results_of(place) if place.source.function(use) is place.function)
    reached = {path for use in uses_here for path in _changed_by(place, use)}
    statements = list(nodes_of(ast.stmt, loop)) if loop is not None and reached else []
    reads_and_results = [(paths_in(inner), binds(inner)) for inner in statements if inner is not loop]
    while more := {name for reads, results in reads_and_results if reads & reached for name in results} - reached:
        reached |= more
    return bool(paths_in(place.node) & reached)


def _changed_by(place: SourceNode, use: ast.AST) -> Iterator[str]:
    """Yield `env` and `state` for `state = env.step(use)`, a call outside torch: its object, the result's names."""
    statement = place.source.statement(use)
    calls = (code for code in place.source.ancestors(use) if code is not use and called_name(code))
    taker = next((call for call in calls if use not in ast.walk(call.func)), None)  # type: ignore[attr-defined]
    owner, method = (owner_of(taker), called_name(taker)) if taker is not None else (None, "")
    if owner is not None and not package(owner, place.source) and not (method in EXTENDS or changes_itself(method)):
        yield from filter(None, (path_of(owner), *binds(statement)))
