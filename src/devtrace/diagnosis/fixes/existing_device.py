"""Code that asks for a device that does not exist asks for one that does: where it says so, not where it fails."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from devtrace.diagnosis.edits import Code
from devtrace.diagnosis.evidence import access_paths
from devtrace.diagnosis.evidence.asked_devices import AskedDevice, accelerator, devices_named
from devtrace.diagnosis.evidence.frame_code import FailingFrame
from devtrace.diagnosis.findings import Edit, Line
from devtrace.diagnosis.fixes.register_on_module import assignments
from devtrace.source.flow import bindings, defaults, given_by, parameters
from devtrace.source.matching import assigned_names, chain, names_in, nodes_of, variable
from devtrace.source.plain_values import plain
from devtrace.source.safe_values import class_dict, evaluate
from devtrace.words.catalogue import sentence

_Origin = tuple[Code, ast.AST]


def existing_device(asked: AskedDevice, there: list[str]) -> tuple[Edit, ...]:
    """Return the change that asks for the first device that exists; of a list those of it that exist."""
    for code, given in _sources_of(asked):
        edit = _listed(asked, code, given, there) or _literal(asked, code, given, there) or _counted(asked, code, given)
        if edit is not None:
            return (edit,)
    return ()


def who_asked(asked: AskedDevice, failing: FailingFrame) -> tuple[Line, ...]:
    """Return the line that says which device, if it is not the one that fails."""
    code, given = next(_sources_of(asked))
    is_default = code.source.nearest(ast.arguments, given) is not None
    statement = given if is_default else code.source.statement(given)
    if statement is None or statement is failing.source_node.statement:
        return ()
    return (Line(sentence("label.created"), asked.frame.snapshot.queries.site_in(code.source, statement, code.site)),)


def _sources_of(asked: AskedDevice) -> Iterator[_Origin]:
    """Yield the code that gives what asks for the device its value, then that code itself."""
    frame = asked.frame
    name = variable([*chain(asked.node)][-1])
    match asked.node:
        case ast.Attribute(value=owner, attr=attribute):
            yield from _of_attribute(asked, owner, attribute)
    if (name and name == variable(asked.node)) or type(asked.node) is ast.Subscript:
        values = _values_of(frame, name)
        inner = (each.id for each in nodes_of(ast.Name, *values) if asked.device in devices_named(frame, each))
        yield from ((frame.code, each) for other in inner if other != name for each in _values_of(frame, other))
        yield from ((frame.code, each) for each in values)
        if asked.is_handed_in:
            yield from ((frame.code, value) for each, value in defaults(frame.function) if each == name)
    yield frame.code, asked.node


def _values_of(frame: FailingFrame, name: str) -> list[ast.expr]:
    """Return what a function gave a variable last."""
    bound = (pair for statement in frame.bindings(name)[-1:] for pair in given_by(frame.source, statement))
    return [each.value for path, each in bound if path == name]


def _of_attribute(asked: AskedDevice, owned: ast.expr, attribute: str) -> Iterator[_Origin]:
    """Yield what the class of an object, or the class itself, gives an attribute."""
    frame = asked.frame
    owner = evaluate(owned, frame.scope())
    for code, statement in assignments(frame.snapshot.queries, owner, attribute):
        if statement.value is not None:
            yield code, statement.value
    kind = owner if issubclass(type(owner), type) else type(owner)
    for body in nodes_of(ast.ClassDef, frame.source.tree):
        if body.name == type.__dict__["__name__"].__get__(kind) and attribute in class_dict(kind):
            yield from ((frame.code, each.value) for each in bindings(frame.source, body, attribute))


def _literal(asked: AskedDevice, code: Code, given: ast.AST, there: list[str]) -> Edit | None:
    """Return the change of the one literal that names the device, or of its number where the kind is the same."""
    kind, _, number = asked.device.partition(":")
    texts = [each for each in nodes_of(ast.Constant, given) if _in_text(each) == asked.device]
    numbers = [each for each in nodes_of(ast.Constant, given) if type(each.value) is int and str(each.value) == number]
    if len(texts) == 1:
        return code.replaced(texts[0], f'"{there[0]}"')
    if len(numbers) == 1 and not texts and there[0].partition(":")[0] == kind:
        return code.replaced(numbers[0], there[0].partition(":")[2])
    return None


def _in_text(node: ast.Constant) -> str:
    return access_paths.device_named_by(node.value)


def _listed(asked: AskedDevice, code: Code, given: ast.AST, there: list[str]) -> Edit | None:
    """Return a list of devices without those that do not exist: `device_ids=[0]`."""
    is_list = len(devices_named(asked.frame, asked.node)) > 1
    listed = code.source.parent(asked.node) if given is asked.node and not is_list else given
    match listed:
        case ast.List(elts=parts):
            left, right = "[", "]"
        case ast.Tuple(elts=parts):
            left, right = "(", ",)"
        case _:
            return None
    if not is_list and given is not asked.node:
        return None
    values = [plain(each, asked.frame.scope()) for each in parts]
    named = [f"{accelerator()}:{value}" if type(value) is int else value for value in values]
    exist = [code.text(each) for each, name in zip(parts, named, strict=True) if name in there]
    text = left + ", ".join(exist) + (right if len(exist) == 1 else right[-1])
    return code.replaced(listed, text) if exist and None not in values else None


def _counted(asked: AskedDevice, code: Code, given: ast.AST) -> Edit | None:
    """Return the change that counts devices round: `f"cuda:{number % torch.cuda.device_count()}"`.

    A rank, which a job has or a function is given, would share its device with another then; NCCL refuses that.
    """
    kind, _, number = asked.device.partition(":")
    torch = next((name for name, full in code.source.imports.items() if full == "torch"), "")
    ranks = asked.frame.snapshot.queries.trace.threads.ints("rank")
    if not number or not torch or kind != accelerator() or (ranks >= 0).any():
        return None
    scope = asked.frame.scope()
    is_text = type(plain(given, scope)) is str
    inner = (each for each in ast.walk(given) if type(each) not in (ast.Constant, ast.FormattedValue))
    counted = next((each for each in inner if plain(each, scope) == int(number)), None)
    if counted is None or names_in(counted) & {*parameters(asked.frame.body)}:
        return None
    if not is_text and variable(counted) not in _loop_variables(code, given):
        return None
    around = f"{ast.unparse(counted)} % {torch}.{kind}.device_count()"
    return code.replaced(given, f'f"{kind}:{{{around}}}"' if is_text else around)


def _loop_variables(code: Code, node: ast.AST) -> list[str]:
    """Return what the loops and comprehensions around code go through."""
    around = (part for outer in code.source.ancestors(node) for part in (outer, *getattr(outer, "generators", ())))
    return assigned_names(*(part.target for part in around if hasattr(part, "iter")))
