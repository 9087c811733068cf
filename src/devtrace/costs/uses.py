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
    found = (match_code(pattern, node) for pattern in patterns)
    return next((each for each in found if each is not None), None)


def uses_of(found: SourceNode, name: str) -> list[ast.Name] | None:
    """Return the places of a function that name a variable, in order; None of a variable that others see too."""
    body = found.source.function(found.node) or found.source.tree
    uses = [node for node in nodes_of(ast.Name, body) if node.id == name]
    return sorted(uses, key=found.source.span) if name not in shared_names(body) else None


def results_of(found: SourceNode) -> list[ast.AST]:
    """Return the code that reads a value, and where it is used: by the variables that its statement makes of it.

    And in a function of the same file that takes it: `rate` of `def set_rate(optimizer, rate)`.
    """
    read = [use for name in binds(found.statement) for use in uses_of(found, name) or () if is_read(use)]
    taken = (use for value in (found.node, *read) for use in uses(found.source, value) if use.role == "argument")
    return [found.node, *read, *(each for use in taken for each in _uses_in_function(found.source, use))]


def _uses_in_function(source: Source, use: Use) -> list[ast.Name]:
    """Return where a function of the file uses the argument that a call of it takes."""
    call = use.outer
    functions = [each for each in nodes_of(ast.FunctionDef, source.tree) if each.name == called_name(call)]
    if not functions or not isinstance(call, ast.Call) or not variable(call.func):
        return []
    taken = [*zip(call.args, parameters(functions[0]), strict=False), *((word, word.arg) for word in call.keywords)]
    names = [name for given, name in taken if given is use.inner]
    return [each for each in nodes_of(ast.Name, *functions[0].body) if each.id in names and is_read(each)]


def updated(statement: ast.stmt) -> tuple[ast.expr, ast.operator, ast.expr] | None:
    """Return the variable, the operator and what is added, of `total += x` and of `total = total + x`."""
    match statement:
        case ast.AugAssign(target=target, op=op, value=value):
            return target, op, value
        case ast.Assign(targets=[target], value=ast.BinOp(left=left, op=op, right=right)):
            other = right if same_code(target, left) else left if same_code(target, right) else None
            return (target, op, other) if other is not None else None
    return None


def gathered_in(found: SourceNode) -> str:
    """Return the list that code appends a value to: `self.losses` of `self.losses.append(loss.item())`."""
    around = found.source.parent(found.node)
    append = match_code("$list.append(...)", around) if alone(found.statement) is not None else None
    added = updated(found.statement)
    if added is not None and type(around) is ast.List:
        return one_line(found.source.segment(added[0]))  # `losses += [loss.item()]`
    return one_line(found.source.segment(append["list"])) if append is not None else ""


def counter(found: SourceNode, read: ast.AST) -> str:
    """Return the variable that counts the rounds in which code is read, or "": `i` of `for i, x in enumerate(loader)`.

    An outer loop's variable counts them only where the inner loop goes through what each of its rounds has made.
    """
    for loop in found.loops:
        taken, target, body = getattr(loop, "iter", None), getattr(loop, "target", None), getattr(loop, "body", ())
        is_counted = taken is not None and not {"enumerate", "range"}.isdisjoint(map(called_name, calls_in(taken)))
        if target is not None and is_counted:
            return variable(listed(target)[0])
        counted = (matches(each, *_ONE_MORE) for each in body)
        if name := next((variable(each["n"]) for each in counted if each is not None), ""):
            return name
        of_a_round = names_in(target) - set(assigned_names(*body)) if target is not None else set()
        if not names_in(read) <= of_a_round:
            return ""
    function = found.source.function(found.node)
    return "step" if function is not None and "step" in parameters(function) else ""


# As what code uses a value.


class Use(NamedTuple):
    """One step outwards from a value, to the code that takes it: `alpha=share`, then `average.add_(x, alpha=share)`."""

    inner: ast.AST
    outer: ast.AST
    role: str
    """What it is there; empty where it is passed on as the number that it is."""


def uses(source: Source, value: ast.AST) -> Iterator[Use]:
    """Yield the code around a value in its statement, with what the value is there."""
    around = source.up_to(value, source.statement(value))
    return (Use(inner, outer, _role(inner, outer)) for inner, outer in pairwise(around))


def _role(inner: ast.AST, outer: ast.AST) -> str:
    """Return what code is to the code around it: in `x[:n]` a "size", in `n + 1` an "operand", in `-n` nothing yet."""
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
    """Return whether a function takes a tensor as well where it is given a number: `p.mul_(x)`, `y.clamp(max=x)`.

    Of two bounds both are tensors, or neither is.
    """
    if called_name(call).removesuffix("_") not in BOUNDS:
        return is_mixing(called_name(call)) and not hasattr(argument, "arg")
    given = (*call.args, *(word.value for word in call.keywords))
    return all(type(getattr(each, "operand", each)) is not ast.Constant for each in given)


def _taken(found: SourceNode, *passing: str) -> list[Use]:
    """Return what takes a value first, wherever the function uses it, but for roles in which it is passed on."""
    steps = ([use for use in uses(found.source, each) if use.role not in passing] for each in results_of(found))
    return [each[0] for each in steps if each]


def is_bound(found: SourceNode) -> bool:
    """Return whether the function goes on by a value as a size or a bound: `x[:n]`, `range(n)`, `torch.zeros(n)`."""
    return any(use.role == "size" for use in _taken(found, "", "operand", "part"))


def factor_of(found: SourceNode) -> dict[str, str] | None:
    """Return the argument, for a number only, that a value scales what a device computes by: `alpha` of `x.add_(y)`."""
    steps = (use for each in results_of(found) for use in uses(found.source, each))
    words = [use.inner.arg for use in steps if use.role == "factor"]  # type: ignore[attr-defined]
    return {"argument": words[0]} if words else None


def taken_by(found: SourceNode) -> dict[str, str] | None:
    """Return the function of torch's that the function gives a value as an argument: `clip_grad_norm_(..., x)`."""
    taken = [use.outer for use in _taken(found, "", "operand") if use.role != "content"]
    calls = [each for each in taken if isinstance(each, ast.Call)]
    names = [called_name(call) for call in calls if package(call.func, found.source) == "torch"]
    return {"function": names[0]} if names else None


def is_rate(found: SourceNode) -> bool:
    """Return whether an optimizer gets the value as its rate: `group["lr"] = x`, `scheduler.step(x)`."""
    statements = [found.source.statement(use) for use in results_of(found)]
    return any(
        match_code('$group["lr"] = $value', each) or match_code("$scheduler.step($value)", alone(each))
        for each in statements
    )


def is_tensor_there(source: Source, value: ast.AST) -> str:
    """Return as what a tensor would do for the value where code uses it; empty where that needs a number."""
    steps, stored = list(uses(source, value)), match_code("$tensor[$at] = $value", source.statement(value))
    kept = stored["value"] if stored is not None else None
    is_stored = isinstance(kept, PASSED_ON) and kept in source.ancestors(value)
    if is_stored or any(use.role == "content" for use in steps):
        return "return"
    is_numbers = any(isinstance(use.inner, ast.keyword | ast.Slice) and use.role != "tensor" for use in steps)
    return "use" if not is_numbers and any(use.role in ("operand", "tensor") for use in steps) else ""


PASSED_ON: Final = (ast.Name, ast.Tuple, ast.List, ast.BinOp, ast.Constant, ast.Starred)


def are_taken_one_by_one(found: SourceNode) -> bool:
    """Return whether a loop goes through the values that code reads, or takes them by an index, one at a time."""
    source, loop = found.source, next(iter(found.loops), None)
    for use in results_of(found):
        around = [use, *takewhile(lambda each: called_name(each) or getattr(each, "attr", ""), source.ancestors(use))]
        item = match_code("$values[$at]", source.parent(use))
        index = names_in(item["at"]) if item is not None and item["values"] is use else set()
        taken = (each.iter in around or index & names_in(each.target) for each in rounds(source, use))
        if any(taken) and (loop is None or loop in source.ancestors(use)):
            return True
    return False


# What code decides by a value.


def _conditions(source: Source, code: ast.AST) -> Iterator[tuple[ast.expr, bool]]:
    """Yield what code asks, and whether that ends a loop, or answers if one is to end."""
    for node in ast.walk(code):
        if isinstance(node, ast.If | ast.While | ast.IfExp):
            last = node.body[-1] if isinstance(node, ast.If) else None
            leaves = isinstance(last, ast.Break | ast.Return) and loops_around(source, node) != []
            answers = matches(last, "return True", "return False") is not None
            yield node.test, isinstance(node, ast.While) or leaves or answers
        elif isinstance(node, ast.Compare | ast.UnaryOp | ast.Call) and is_truth(node):
            yield node, isinstance(source.parent(node), ast.Return)


def is_truth(node: ast.AST) -> bool:
    return isinstance(node, ast.Compare) or matches(node, "not $x", "bool($x)") is not None


def decides_the_loop(found: SourceNode) -> bool:
    """Return whether the value says how long a loop goes on: that needs it. A guard against what never is does not."""
    statement = found.statement
    names = set(assigned_names(statement)) if isinstance(statement, ast.Assign | ast.AnnAssign) else set()
    asked = _conditions(found.source, found.function or found.source.tree)
    tests = (test for test, ends in asked if ends and not _checks_floats(test, found))
    return any(found.node in ast.walk(test) or not names.isdisjoint(names_in(test)) for test in tests)


def decides_later(found: SourceNode) -> bool:
    """Return whether the loop compares what the statement gets, or branches by it: `if value < best`."""
    names = set(assigned_names(found.statement))
    asked = (test for loop in found.loops[:1] for test, _ in _conditions(found.source, loop))
    return any(not names.isdisjoint(names_in(test)) for test in asked)


def _checks_floats(test: ast.expr, found: SourceNode) -> bool:
    """Return whether a test asks for NaN or infinity: `isnan(x)`, `x != x`, `x == float("inf")`, `x < -math.inf`."""
    parts = list(nodes_of(ast.expr, test))
    is_named = any(full_name(each, found.source).endswith((".inf", ".nan")) for each in parts)
    is_written = any(_NOT_FINITE.fullmatch(found.source.segment(each)) for each in parts)
    is_checked = is_named or is_written or any(called_name(each) in CHECKS_FLOATS for each in parts)
    compared = ((one.left, each) for one in nodes_of(ast.Compare, test) for each in one.comparators)
    return is_checked or any(same_code(*pair) for pair in compared)


def is_gone_on_by(found: SourceNode, *, is_number: bool) -> bool:
    """Return whether a value of the step picks what the code does next, as a size or an index does (`is_number`).

    A guard that only raises picks nothing, and state that the object itself keeps need not be asked for each time.
    """
    node, statement, asked = found.node, found.statement, found.node if is_number else None
    for each in (statement, *reversed(list(found.source.up_to(node, statement)))):  # a part of a condition counts first
        is_tested = isinstance(each, ast.If | ast.While | ast.IfExp) and (each is node or node in ast.walk(each.test))
        if is_tested or isinstance(each, ast.BoolOp) or is_truth(each):
            asked = getattr(each, "test", each)
    names = nodes_of(ast.Name, asked) if asked is not None else ()
    kept = (own_name(found.source, node), "bool", "int")
    is_of_the_step = any(not full_name(name, found.source) for name in names if name.id not in kept)
    raises = isinstance(statement, ast.If) and all(isinstance(each, ast.Raise) for each in statement.body)
    is_guard = isinstance(statement, ast.Assert) or (raises and not statement.orelse)  # type: ignore[attr-defined]
    return is_of_the_step and not is_guard


def comes_back(found: SourceNode) -> bool:
    """Return whether the value comes back in the next round: `state = env.step(action.item())`.

    It is passed to code outside torch, whose result, or object, the next round reads.
    """
    loop = next(iter(found.loops), None)
    own = (use for use in results_of(found) if found.source.function(use) is found.function)
    reached = {path for use in own for path in _changed_by(found, use)}
    statements = list(nodes_of(ast.stmt, loop)) if loop is not None and reached else []
    taking = [(paths_in(each), binds(each)) for each in statements if each is not loop]
    while more := {name for paths, names in taking if paths & reached for name in names} - reached:
        reached |= more
    return bool(paths_in(found.node) & reached)


def _changed_by(found: SourceNode, use: ast.AST) -> Iterator[str]:
    """Yield the object of a call outside torch that takes a value, and the variables for its result."""
    statement = found.source.statement(use)
    calls = (each for each in found.source.ancestors(use) if each is not use and called_name(each))
    taker = next((each for each in calls if use not in ast.walk(each.func)), None)  # type: ignore[attr-defined]
    owner, method = (owner_of(taker), called_name(taker)) if taker is not None else (None, "")
    if owner is not None and not package(owner, found.source) and not (method in EXTENDS or changes_itself(method)):
        yield from filter(None, (path_of(owner), *binds(statement)))
