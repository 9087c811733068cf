"""Access paths: every chain of names that leads to a tensor from the variables of the frames on the stack.

`Walk` visits once what the frames reach, without running a line of anybody's code, and notes for each object the
references to it. So a tensor's path from an inner frame (`self.table`) comes free with that from the outermost one
(`model.positions.table`).
"""

from __future__ import annotations

import sys
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import compress
from typing import Any, Final

from devtrace.source.freeze import MOST_DEPTH, MOST_OBJECTS
from devtrace.source.kinds import is_module, is_of_program, is_optimizer, users_file
from devtrace.source.object_walk import Reference, ReferenceKind, is_tensor, may_lead, members

MOST_NAMES: Final = 12


@dataclass(frozen=True)
class AccessPath:
    """One way to name an object: the references that lead to it from a variable, each with its text."""

    references: tuple[Reference, ...]
    texts: tuple[str, ...]

    @property
    def text(self) -> str:
        return "".join(self.texts)

    @property
    def code(self) -> str:
        """Return the path as an expression: `model.encoder[0].down`; empty through a closure or optimizer state."""
        code = ""
        for reference in self.references:
            if reference.kind in ("closure", "state") and code:  # no expression leads from an object there
                return ""
            is_index = code and reference.kind != "item" and str(reference.key).isdigit()
            code += f"[{reference.key}]" if is_index else reference.text
        return code

    @property
    def objects(self) -> tuple[Any, ...]:
        """Return the objects on the path, the named one last."""
        return tuple(reference.value for reference in self.references)

    @property
    def frame(self) -> int:
        """Number of the frame with the path's first variable; 0 is the innermost."""
        return self.references[0].frame

    @property
    def last(self) -> Reference:
        return self.references[-1]

    def prefix(self, length: int) -> AccessPath:
        """Return `model.head` of `model.head.weight` for length 2."""
        return AccessPath(self.references[:length], self.texts[:length])

    def parts(self, first: int = 1) -> Iterator[AccessPath]:
        """Yield `model`, `model.head` and `model.head.weight`; with `first=2` not `model`, and so on."""
        return map(self.prefix, range(first, len(self.references) + 1))

    def beside(self, reference: Reference) -> AccessPath:
        """Return the path of another object of the same owner."""
        return AccessPath((*self.references[:-1], reference), (*self.texts[:-1], reference.text))

    def modules(self) -> list[tuple[int, Any]]:
        """Return the modules on the path with their indexes in `objects`, outermost first."""
        return [(index, value) for index, value in enumerate(self.objects) if is_module(value)]

    def registered_from(self, index: int) -> bool:
        """Return whether `.to()` of the module at an index reaches the named object."""
        return all(reference.kind in ("module", "parameter", "buffer") for reference in self.references[index + 1 :])

    @property
    def is_step_count(self) -> bool:
        """True of an optimizer's count of steps, which Adam and its kin keep on the CPU by design."""
        by_parameter = any(reference.kind == "state" for reference in self.references[:-1])
        return self.last.kind == "item" and self.last.key == "step" and by_parameter

    @property
    def is_state_of_an_optimizer(self) -> bool:
        by_optimizer = any(is_optimizer(value) for value in self.objects[:-1])
        return by_optimizer and any(reference.kind == "state" for reference in self.references)

    @property
    def rank(self) -> tuple[int, int, int, int]:
        """Lowest for the best: an optimizer's state, not by its groups, no loose list; a global; outermost, short."""
        by_optimizer, is_state = any(is_optimizer(value) for value in self.objects[:-1]), self.is_state_of_an_optimizer
        return (
            -1 if is_state else 2 * by_optimizer + self.listed,
            -sys.maxsize if self.last.kind == "global" else -self.frame,
            len(self.references),
            len(self.text),
        )

    @property
    def listed(self) -> bool:
        """True if the path leads through a list that no module holds: `trainable[0]`, but not `tower.stages[0]`."""
        for reference in self.references:
            if is_module(reference.owner):
                return False
            if reference.kind == "item" and type(reference.owner) in (list, tuple, deque):
                return True
        return False


NO_PATH: Final = AccessPath((Reference(None, "variable", "", None),), ("",))
"""The path to an object that has no name."""


@dataclass
class Walk:
    """All that the variables of some frames (innermost first) lead to, with the references that lead there."""

    frames: list[dict[str, tuple[Any, ReferenceKind]]]
    follows: Callable[[object], bool] | None = None
    most_objects: int = MOST_OBJECTS
    most_depth: int = MOST_DEPTH
    most_items: int | None = None
    references: dict[int, tuple[Reference, ...]] = field(default_factory=dict)
    tensors: list[Any] = field(default_factory=list)

    def __post_init__(self) -> None:
        queue: deque[tuple[Any, int]] = deque()
        for number, named in reversed(list(enumerate(self.frames))):
            roots = (Reference(None, kind, name, value, number) for name, (value, kind) in named.items())
            self._visit((root for root in roots if may_lead(root.value) or users_file(root.value)), 0, queue)
        while queue and len(self.references) < self.most_objects:
            owner, depth = queue.popleft()
            self._visit(members(owner, self.most_items), depth + 1, queue)

    def _visit(self, references: Iterable[Reference], depth: int, queue: deque[tuple[Any, int]]) -> None:
        references_of, follows, is_inner = self.references, self.follows, depth < self.most_depth
        for reference in references:
            value = reference.value
            earlier = references_of.get(id(value), ())
            if len(earlier) < MOST_NAMES:
                references_of[id(value)] = (*earlier, reference)
            if earlier:  # its members are visited once
                continue
            if type(value) is not dict and is_tensor(value):
                self.tensors.append(value)
            elif is_inner and is_of_program(value, is_variable=not depth) and (follows is None or follows(value)):
                queue.append((value, depth))

    @cached_property
    def objects(self) -> list[Any]:
        return [references[0].value for references in self.references.values()]

    def of_kind(self, is_one: Callable[[object], bool]) -> list[Any]:
        """Return the modules, or optimizers, among the objects. Each class is asked once: of 60,000 few are modules."""
        classes = list(map(id, map(type, self.objects)))
        wanted = {kind for kind, value in dict(zip(classes, self.objects, strict=True)).items() if is_one(value)}
        return list(compress(self.objects, map(wanted.__contains__, classes)))

    def names(self, value: object) -> list[AccessPath]:
        """Return an object's access paths, best first; those through an imported file only if there are no others."""
        names: list[AccessPath] = []
        visits = Counter[int]()
        queue: deque[tuple[object, tuple[Reference, ...]]] = deque([(value, ())])  # objects, with the path from there
        while queue:
            reached, rest = queue.popleft()
            for reference in self.references.get(id(reached), ()):
                owner, path = reference.owner, (reference, *rest)
                if owner is None:  # a variable
                    names.append(AccessPath(path, tuple(self._text(step) for step in path)))
                elif len(rest) < MOST_DEPTH and all(step.value is not owner for step in path):
                    visits[id(owner)] += 1
                    if visits[id(owner)] <= MOST_NAMES:
                        queue.append((owner, path))
        not_by_files = [name for name in names if not any(map(users_file, name.objects))]
        return sorted(not_by_files or names, key=lambda name: name.rank)[:MOST_NAMES]

    def first_path(self, value: object) -> AccessPath:
        """Return the access path by which the walk found an object first: a shortest one."""
        references = deque([self.references[id(value)][0]])
        while references[0].owner is not None:
            references.appendleft(self.references[id(references[0].owner)][0])
        keys = (self.first_path(step.key).text if self._has_named_key(step) else "" for step in references)
        texts = (f"[{key}]" if key else step.text for step, key in zip(references, keys, strict=True))
        return AccessPath(tuple(references), tuple(texts))

    def _text(self, reference: Reference) -> str:
        return f"[{self.names(reference.key)[0].text}]" if self._has_named_key(reference) else reference.text

    def _has_named_key(self, reference: Reference) -> bool:
        """Return whether a key has access paths itself, as a parameter in `optimizer.state[model.head.weight]`."""
        return reference.kind == "state" and id(reference.key) in self.references


def roots(frame: Any) -> dict[str, tuple[Any, ReferenceKind]]:
    """Return a frame's variables, and the globals that its code mentions."""
    code = frame.f_code
    variables: dict[str, tuple[Any, ReferenceKind]] = {}
    if frame.f_locals is not frame.f_globals:  # else it is a cell or a file
        for name, value in frame.f_locals.items():
            variables[name] = value, "closure" if name in code.co_freevars else "variable"
    for name in code.co_names:
        if name not in variables and name in frame.f_globals:
            variables[name] = frame.f_globals[name], "global"
    return variables
