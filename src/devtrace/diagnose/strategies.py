"""Ways to mend a mismatch, each an edit of the user's code or nothing."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from devtrace.diagnose import names, origins
from devtrace.diagnose.causes import Case, Verdict
from devtrace.diagnose.edits import Code
from devtrace.diagnose.facts import Facts, Place
from devtrace.diagnose.names import Name
from devtrace.diagnose.scopes import Stand
from devtrace.report import Edit, Site
from devtrace.source import read


@dataclass(frozen=True)
class Fix:
    """What to do, in words, and as edits."""

    help: str
    edits: tuple[Edit, ...] = ()


def _fix(help: str, *edits: Edit | None) -> Fix | None:
    """A fix, if all its edits could be made."""
    whole = tuple(edit for edit in edits if edit is not None)
    return Fix(help, whole) if whole and len(whole) == len(edits) else None


def _flat(text: str) -> str:
    return " ".join(text.split())


def _code(case: Case, site: int) -> tuple[Code, Place] | None:
    """The source at a site of the trace, if it is the user's to edit."""
    place, row = case.facts.place(site), case.facts.site(site)
    if place is None or row is None or case.facts.package(site):
        return None
    return Code(place.source, row), place


def _stand(case: Case, site: int) -> Stand | None:
    """The frame that is still running the function of a site."""
    row = case.facts.site(site)
    number = case.scene.frame_of(row) if row is not None else None
    return None if number is None else Stand.of(case.scene, number, case.suspect.home)


# The device where it is made.


def give_the_device(case: Case, verdict: Verdict) -> Fix | None:
    """`device=x.device` in the factory's call."""
    if case.origin is None or case.origin.op < 0:
        return None
    site = case.facts.trace.ops.number("site", case.origin.op)
    found, stand = _code(case, site), _stand(case, site)
    call = origins.factory(found[1]) if found is not None else None
    if found is None or call is None or stand is None:
        return None
    code = found[0]
    device = stand.device(code.source.span(call).line, call)
    if not device:
        return None
    word = next((word for word in call.keywords if word.arg == "device"), None)
    if word is not None:
        return _fix(f"create it with device={device}", code.replaced(word.value, device))
    body = code.text(call)[:-1].rstrip().removesuffix(",")
    new = f"{body}{', ' if call.args or call.keywords else ''}device={device})"
    return _fix(f"give it the device: {_flat(new)}", code.replaced(call, new))


def cast_where_bound(case: Case, verdict: Verdict) -> Fix | None:
    """`kernel = tapered(size).to(signal.device)`: where the value comes into the frame that uses it."""
    for name in reversed(case.names):
        stand = Stand.of(case.scene, name.frame, case.suspect.home) if len(name.holds) == 1 else None
        bound = stand.bindings(name.text)[-1:] if stand is not None else []
        if stand is None or not bound or not isinstance(bound[0], ast.Assign) or not _plain(bound[0]):
            continue
        value = bound[0].value
        device = stand.device(stand.code.source.span(bound[0]).line, value)
        if device:
            new = stand.code.moved_to(value, device)
            return _fix(f"move it where it is made: {name.text} = {_flat(new)}", stand.code.replaced(value, new))
    return None


def _plain(statement: ast.Assign) -> bool:
    return len(statement.targets) == 1 and isinstance(statement.targets[0], ast.Name)


def ask_for_home(case: Case, verdict: Verdict) -> Fix | None:
    """`.to(first)`, `.cuda()` or `.cpu()` that makes the tensor what it is becomes `.to(second)`."""
    if verdict.move is None or verdict.module is not None:
        return None
    found, stand = _code(case, verdict.move.site), _stand(case, verdict.move.site)
    if found is None or stand is None or not isinstance(found[1].node, ast.Call):
        return None
    code, place = found
    call = found[1].node
    outermost = place.statement.value if isinstance(place.statement, ast.Assign | ast.Return) else None
    if outermost is not call or not isinstance(call.func, ast.Attribute) or call.func.attr not in ("to", "cuda", "cpu"):
        return None
    line = code.source.span(call).line
    device = stand.device(line, call) if _is_inner(stand) else stand.set_up_device(line)
    if not device:
        return None
    new = f"{code.text(call.func.value)}.to({device})"
    return _fix(f"put it where it is needed: {_flat(new)}", code.replaced(call, new))


def _is_inner(stand: Stand) -> bool:
    return names.is_module(stand.held.get("self"))


# What a module holds.


def register(case: Case, verdict: Verdict) -> Fix | None:
    """`self.register_buffer("x", ..., persistent=False)`, `nn.ModuleList([...])`, `nn.ModuleDict()`."""
    if verdict.name is None or verdict.module is None or len(verdict.module.holds) >= len(verdict.name.holds):
        return None
    at = len(verdict.module.holds)
    hold, value = verdict.name.holds[at], verdict.name.objects[at]
    if hold.step == "module":  # a plain object's attribute further down
        place = next((i for i in range(at, len(verdict.name.holds)) if verdict.name.holds[i].step == "attribute"), -1)
        hold, value = verdict.name.holds[place], verdict.name.objects[place]
    attribute = hold.text.lstrip(".")
    if hold.step != "attribute" or not names.is_module(hold.owner):
        return None
    for code, statement in assignments(case.facts, hold.owner, attribute):
        found = _registered(code, statement, value, attribute)
        if found is not None:
            return found
    return None


def assignments(facts: Facts, owner: Any, attribute: str) -> Iterator[tuple[Code, ast.Assign]]:
    """Where the methods of an object's class say `self.attribute = ...`."""
    for klass in type(owner).__mro__[:-1]:
        code = next((value.__code__ for value in vars(klass).values() if hasattr(value, "__code__")), None)
        source = read(code.co_filename) if code is not None else None
        if code is None or source is None or "-packages/" in code.co_filename:
            continue
        like = next((site for site in facts.trace.sites if site.file == code.co_filename), None)
        place = Site.of(like) if like is not None else Site(code.co_filename, 0)
        for body in ast.walk(source.tree):
            if isinstance(body, ast.ClassDef) and body.name == klass.__name__:
                for node in ast.walk(body):
                    if isinstance(node, ast.Assign) and len(node.targets) == 1 and _is_own(node.targets[0], attribute):
                        yield Code(source, place), node


def _is_own(node: ast.expr, attribute: str) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == attribute and isinstance(node.value, ast.Name)


def _registered(code: Code, statement: ast.Assign, value: Any, attribute: str) -> Fix | None:
    said, right = code.text(statement.targets[0]), code.text(statement.value)
    if names.is_tensor(value):
        if isinstance(statement.value, ast.Constant):
            return None
        new = f'{said.rpartition(".")[0]}.register_buffer("{attribute}", {right}, persistent=False)'
        return _fix(f"register it as a buffer: {_flat(new)}", code.replaced(statement, new))
    nn = _nn(code)
    if type(value) is list and _all_modules(value):
        new = f"{nn}.ModuleList({right})"
    elif type(value) is dict and _all_modules(list(value.values())) and all(type(key) is str for key in value):
        new = f"{nn}.ModuleDict()" if right in ("{}", "dict()") else f"{nn}.ModuleDict({right})"
    else:
        return None
    kind = new.split("(")[0].rpartition(".")[2]
    return _fix(f"keep the layers in a {kind}: {said} = {_flat(new)}", code.replaced(statement.value, new))


def _all_modules(values: list[Any]) -> bool:
    return bool(values) and all(names.is_module(value) for value in values)


def _nn(code: Code) -> str:
    """What the file calls torch.nn."""
    for node in ast.walk(code.source.tree):
        for alias in node.names if isinstance(node, ast.Import | ast.ImportFrom) else ():
            if alias.name == "nn" and isinstance(node, ast.ImportFrom) and node.module == "torch":
                return alias.asname or "nn"
            if alias.name == "torch.nn" and alias.asname:
                return alias.asname
    return "torch.nn"


def move_when_attached(case: Case, verdict: Verdict) -> Fix | None:
    """Move the part where it is attached, or the model again in the frame that holds it."""
    return _move_again(case, verdict) or _move_at_birth(case, verdict)


def _move_again(case: Case, verdict: Verdict) -> Fix | None:
    """`model.head.to(device)` below the line that attached it, where that line and the move are in one frame."""
    if verdict.name is None or verdict.module is None or verdict.move is None:
        return None
    name = verdict.name
    stand = Stand.of(case.scene, name.frame, case.suspect.home)
    if stand is None:
        return None
    statement = _attaching(case, verdict, stand)
    if statement is None:
        return None
    line = stand.code.source.span(statement).end_line + 1
    device = stand.set_up_device(line)
    part = _part(verdict)
    if not device or part is None:
        return None
    new = f"{part}.to({device})"
    return _fix(
        f"add `{new}` below line {line - 1}, or move all of it after attaching", stand.code.below(statement, new)
    )


def _part(verdict: Verdict) -> str | None:
    """The module to move again, as code; the whole when the odd one is its own parameter."""
    assert verdict.module is not None
    return code_of(verdict.module)


def _attaching(case: Case, verdict: Verdict, stand: Stand) -> ast.stmt | None:
    """The statement of a frame, after the move, that attached the part: by itself or by a function that it calls."""
    born = case.facts.site(verdict.born)
    moved = case.facts.site(verdict.move.site) if verdict.move is not None else None
    if born is None:
        return None
    span = stand.code.source.span
    same = stand.code.site.file == born.file and stand.code.site.cell_id == born.cell_id
    function = (born.function or "").replace("<locals>.", "").split(".")
    for statement in sorted(stand.statements(), key=lambda statement: span(statement).line):
        where = span(statement)
        if not isinstance(statement, ast.Assign | ast.Expr | ast.AugAssign) or where.line > stand.line:
            continue
        if same and where.line <= born.line <= where.end_line:
            return statement
        after = moved is None or moved.file != stand.code.site.file or where.line > moved.line
        if (
            after
            and _mentions(statement, verdict)
            and (set(function) & _called(statement) or _is_helper(case, statement, stand))
        ):
            return statement
    return None


def _mentions(statement: ast.stmt, verdict: Verdict) -> bool:
    assert verdict.name is not None
    root = verdict.name.holds[0].text
    return any(isinstance(node, ast.Name) and node.id == root for node in ast.walk(statement))


def _called(statement: ast.stmt) -> set[str]:
    return {called_name(node) for node in ast.walk(statement) if isinstance(node, ast.Call)} - {""}


def called_name(call: ast.Call) -> str:
    """`c` of `a.b.c(...)` and of `c(...)`."""
    if isinstance(call.func, ast.Attribute):
        return call.func.attr
    return call.func.id if isinstance(call.func, ast.Name) else ""


def _is_helper(case: Case, statement: ast.stmt, stand: Stand) -> bool:
    """Whether a statement hands the model to a function of the user's as a plain argument."""
    value = statement.value if isinstance(statement, ast.Assign | ast.Expr) else None
    if not isinstance(value, ast.Call) or not isinstance(value.func, ast.Name):
        return False
    given = [argument.id for argument in value.args if isinstance(argument, ast.Name)]
    return any(names.is_module(stand.held.get(name)) for name in given)


def _move_at_birth(case: Case, verdict: Verdict) -> Fix | None:
    """`owner.head = nn.Linear(...)` gets `.to(next(owner.parameters()).device)`: the line has all that it needs."""
    found = _code(case, verdict.born)
    if found is None or verdict.name is None:
        return None
    code, place = found
    statement = place.statement
    if not isinstance(statement, ast.Assign) or not isinstance(statement.targets[0], ast.Attribute | ast.Subscript):
        return None
    function = place.source.function(place.node)
    if getattr(function, "name", "") == "__init__":
        return None
    owner = code.text(statement.targets[0].value)
    parameter = verdict.name.last.step == "parameter" and len(verdict.name.objects) >= 2
    if parameter and _is_parameter_call(statement.value):
        inner = statement.value.args[0]  # type: ignore[attr-defined]
        new = code.moved_to(inner, f"next({owner}.parameters()).device")
        return _fix(f"make it on the model's device: {_flat(new)}", code.replaced(inner, new))
    new = code.moved_to(statement.value, f"next({owner}.parameters()).device")
    return _fix(
        f"move it as you attach it: {code.text(statement.targets[0])} = {_flat(new)}",
        code.replaced(statement.value, new),
    )


def _is_parameter_call(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and bool(node.args) and _called(ast.Expr(node)) >= {"Parameter"}


def bring_back(case: Case, verdict: Verdict) -> Fix | None:
    """After the line that sent the module away, or the call of the function that did: `model.to(device)`."""
    if verdict.module is None or verdict.move is None or verdict.name is None:
        return None
    stand = Stand.of(case.scene, verdict.module.frame, case.suspect.home)
    away = case.facts.site(verdict.move.site)
    if stand is None or away is None:
        return None
    span = stand.code.source.span
    function = away.function.rpartition(".")[2]
    for statement in stand.statements():
        if not isinstance(statement, ast.Assign | ast.Expr):
            continue
        here = away.file == stand.code.site.file and span(statement).line <= away.line <= span(statement).end_line
        if here or (function and function in _called(statement)):
            device = stand.set_up_device(span(statement).end_line + 1)
            said = code_of(verdict.module)
            if device and said:
                return _fix(f"bring it back: {said}.to({device})", stand.code.below(statement, f"{said}.to({device})"))
    return None


# What the user's own objects and batches hold.


def code_of(name: Name) -> str | None:
    """A name as an expression that can be written: `model.encoder[0].down`."""
    text = ""
    for hold in name.holds:
        if hold.step in ("closure", "state") and text:
            return None
        inner = hold.text.lstrip(".")
        text += f"[{inner}]" if text and hold.step != "item" and inner.isdigit() else hold.text.lstrip(":")
    return text


def keep_the_result(case: Case, verdict: Verdict) -> Fix | None:
    """`x.to(device)` on a line of its own becomes `x = x.to(device)`."""
    found = _code(case, verdict.dropped) if verdict.dropped >= 0 else None
    if found is None or not isinstance(found[1].statement, ast.Expr):
        return None
    code, place = found
    call = found[1].statement.value
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
        return None
    new = f"{code.text(call.func.value)} = {code.text(call)}"
    return _fix(f"keep what .to() returns: {_flat(new)}", code.replaced(place.statement, new))


def move_beside(case: Case, verdict: Verdict) -> Fix | None:
    """Below the line that moved its neighbour: the same for this one, with the same arguments."""
    found = _code(case, verdict.move.site) if verdict.move is not None else None
    if found is None or verdict.name is None or not isinstance(found[1].statement, ast.Assign):
        return None
    code, place = found
    call = place.node
    stand = Stand.of(case.scene, verdict.name.frame, case.suspect.home)
    if stand is None or not isinstance(call, ast.Call) or place.source.function(call) is not _function(stand):
        return None
    said = code_of(verdict.name)
    if said is None or not _assignable(verdict.name) or not isinstance(call.func, ast.Attribute):
        return None
    arguments = ", ".join(code.text(part) for part in (*call.args, *call.keywords))
    new = f"{said} = {said}.{call.func.attr}({arguments})"
    return _fix(f"move it as its neighbours: {new}", code.below(place.statement, new))


def _function(stand: Stand) -> ast.AST | None:
    return stand.place.source.function(stand.place.node)


def _assignable(name: Name) -> bool:
    """Whether the last step of a name may stand on the left: not in a tuple, not behind a property."""
    return name.last.owner is None or not issubclass(type(name.last.owner), tuple)


def move_below(case: Case, verdict: Verdict) -> Fix | None:
    """Below the line that gives the user's variable its value: move what it holds."""
    for name in [verdict.name, *case.names, *case.roots]:
        found = _moved_below(case, verdict, name) if name is not None and len(name.holds) > 1 else None
        if found is not None:
            return found
    return None


def _moved_below(case: Case, verdict: Verdict, name: Name) -> Fix | None:
    stand = Stand.of(case.scene, name.frame, case.suspect.home)
    bound = stand.bindings(name.holds[0].text)[-1:] if stand is not None else []
    if stand is None or not bound:
        return None
    statement, span = bound[0], stand.code.source.span(bound[0])
    device = stand.set_up_device(span.end_line + 1)
    lines = _moving_lines(case, name, device) if device else []
    if not lines:
        return None
    if isinstance(statement, ast.Assign):
        return _fix(f"add `{lines[0]}` below line {span.end_line}", stand.code.below(statement, *lines))
    if isinstance(statement, ast.For | ast.With):
        return _fix(f"add `{lines[0]}` at the top of the block", stand.code.into(statement, *lines))
    return None


def _moving_lines(case: Case, name: Name, device: str) -> list[str]:
    """Code that moves what a name leads to: the whole module that owns it, else the tensor and its fellows."""
    root = next((place for place, _ in name.modules() if name.registered_from(place)), None)
    if root is not None:
        said = code_of(Name(name.holds[: root + 1], name.objects[: root + 1], ""))
        return [f"{said}.to({device})"] if said else []
    if not _assignable(name):
        return []
    texts = [code_of(fellow) for fellow in (name, *_fellows(case, name))]
    return [f"{text} = {text}.to({device})" for text in texts if text]


def _fellows(case: Case, name: Name) -> Iterator[Name]:
    """Tensors beside it, on the same wrong device, that the failing function speaks of too."""
    spoken = set(case.scene.frames[0].f_code.co_names) if case.scene.frames else set()
    for fellow in case.scene.beside(name):
        row = case.scene.row(fellow.objects[-1])
        if row is None or case.facts.device(row) != case.suspect.device or case.facts.dims[row] == 0:
            continue
        if fellow.last.step == "item" or fellow.last.text.lstrip(".") in spoken:
            yield fellow


def swap(case: Case, verdict: Verdict) -> Fix | None:
    """The line that copies goes below the line that moves."""
    found = _code(case, verdict.move.site) if verdict.move is not None else None
    for name in case.names:
        stand = Stand.of(case.scene, name.frame, case.suspect.home)
        bound = stand.bindings(name.holds[0].text)[-1:] if stand is not None else []
        if stand is None or not bound or found is None or found[1].source is not stand.place.source:
            continue
        made, moving = bound[0], found[1].statement
        if _may_swap(stand, made, moving):
            text = stand.code.text(made)
            edits = (stand.code.removed(made), stand.code.below(moving, *text.split("\n")))
            return _fix(f"move `{_flat(text)}` below `{_flat(stand.code.text(moving))}`", *edits)
    return None


def _may_swap(stand: Stand, made: ast.stmt, moving: ast.stmt) -> bool:
    """Both are plain statements of one block, and the move needs nothing of what it would now come before."""
    source = stand.place.source
    if not isinstance(made, ast.Assign) or source.parent(made) is not source.parent(moving):
        return False
    first, last = source.span(made), source.span(moving)
    if first.line >= last.line or first.end_line != first.line:
        return False
    bound = {node.id for target in made.targets for node in ast.walk(target) if isinstance(node, ast.Name)}
    between = [s for s in stand.statements() if first.line < source.span(s).line <= last.end_line]
    used = {node.id for statement in between for node in ast.walk(statement) if isinstance(node, ast.Name)}
    return not bound & used


def state_along(case: Case, verdict: Verdict) -> Fix | None:
    """Below the move: the optimizer's state goes along."""
    for name in case.names:
        place = next((i for i, value in enumerate(name.objects) if names.is_optimizer(value)), None)
        found = _code(case, verdict.move.site) if verdict.move is not None else None
        stand = Stand.of(case.scene, name.frame, case.suspect.home)
        if place is None or found is None or stand is None or found[1].source is not stand.place.source:
            continue
        said = code_of(Name(name.holds[: place + 1], name.objects[: place + 1], ""))
        device = stand.set_up_device(stand.code.source.span(found[1].statement).end_line + 1)
        if said and device:
            lines = (
                f"for state in {said}.state.values():",
                f'    state.update({{k: v.to({device}) for k, v in state.items() if hasattr(v, "to")}})',
            )
            return _fix(
                "build the optimizer after the move, or move its state along",
                found[0].below(found[1].statement, *lines),
            )
    return None


# Where it is used.


def at_the_use(case: Case, verdict: Verdict) -> Fix | None:
    """`deep + stem.to(deep.device)`."""
    stand = Stand.of(case.scene, 0, case.suspect.home)
    if stand is None or _written(case, stand):
        return None
    node = stand.node_of(case.suspect.tensor)
    device = stand.home_beside(node) if node is not None else ""
    if node is None or not device:
        return None
    new = stand.code.moved_to(node, device)
    return _fix(f"move it where it is used: {_flat(new)}", stand.code.replaced(node, new))


def _written(case: Case, stand: Stand) -> bool:
    """Whether the failing op writes into the odd one: a moved copy of it would be written in vain."""
    op = case.facts.op_name(case.suspect.op).split(".")[1]
    inputs = case.facts.inputs(case.suspect.op)
    return op.endswith("_") and not op.endswith("__") and bool(inputs) and inputs[0] == case.suspect.tensor


def use_other_side(case: Case, verdict: Verdict) -> Fix | None:
    """What is added in place goes to where the sum is: `self.counts += flat.to(self.counts.device)`."""
    stand = Stand.of(case.scene, 0, case.suspect.home)
    if stand is None or not _written(case, stand):
        return None
    into = stand.node_of(case.suspect.tensor)
    for row in case.suspect.right:
        node = stand.node_of(row)
        if node is not None and into is not None and node is not into:
            new = stand.code.moved_to(node, f"{stand.code.text(into)}.device")
            return _fix(f"bring what is added to it: {_flat(new)}", stand.code.replaced(node, new))
    return None
