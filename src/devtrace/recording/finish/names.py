"""Paths of modules and names of parameters as the user writes them, found at the end, while the objects still live."""

import ast
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch

from devtrace.recording.columns import sites
from devtrace.recording.columns.process_history import Stamp, history
from devtrace.recording.columns.sites import USER, files
from devtrace.recording.columns.tensor_rows import Array, Rows
from devtrace.recording.context.module_tree import own_tensors
from devtrace.recording.context.modules import KnownModule, Modules
from devtrace.recording.context.optimizers import Optimizers
from devtrace.recording.finish.merge import indexes_in
from devtrace.runtime.quiet import gradient_of
from devtrace.source.matching import is_path
from devtrace.source.object_walk import states_of, stored
from devtrace.source.parsing import node_of


class TensorNames:
    """Names and roles of the tensors of one recording."""

    def __init__(self, rows: Rows, namespace: Mapping[str, Any] | None) -> None:
        self._rows = rows
        self._namespace = namespace or {}
        self._names: dict[int, tuple[str, str]] = {}

    def paths(self, known: list[KnownModule]) -> list[str]:
        """Return the modules' paths as the user would write them; two roots never share one."""
        rows = dict.fromkeys(module.root for module in known)
        roots = self._distinct_roots({row: self._root_name(known[row]) for row in rows}, known)
        return [f"{roots[module.root]}.{module.path}" if module.path else roots[module.root] for module in known]

    def _distinct_roots(self, roots: dict[int, str], known: list[KnownModule]) -> dict[int, str]:
        """Return a name of its own for each root: `blocks[0]` for `block` of `for block in blocks`, else `block#2`."""
        shared = Counter(roots.values())
        paths = {row: name if shared[name] == 1 else self._as_item(known[row]) or name for row, name in roots.items()}
        seen: Counter[str] = Counter()
        for row in sorted(paths, key=lambda row: known[row].module() is None):
            name = paths[row]
            seen[name] += 1
            if seen[name] > 1:
                paths[row] = f"{name}#{seen[name]}"
        return paths

    def _as_item(self, root: KnownModule) -> str:
        """Return `blocks[0]` for a root in the container or module of a variable `blocks`; else empty."""
        module = root.module()
        for name, value in list(self._namespace.items()) if module is not None else ():
            for reference in stored(value) if not name.startswith("_") else ():
                if reference.value is module and reference.kind in ("item", "module"):
                    return f"{name}{reference.text}"
        return ""

    def _root_name(self, root: KnownModule) -> str:
        """Return the expression that calls a root outside of functions, else a variable, else the expression."""
        expression = _expression_at(root.site, passed=root.passed)
        if root.method:
            expression = expression.rpartition(".")[0]
        if expression and sites.is_outermost(root.site):
            return expression
        module = root.module()
        variables = list(self._namespace.items()) if module is not None else []
        names = [name for name, value in variables if value is module]
        return next((name for name in names if not name.startswith("_")), expression or root.type.lower())

    def collect(self, modules: Modules, optimizers: Optimizers) -> None:
        """Take the tensors' names from the live modules and optimizers, then from what the others noted."""
        known = modules.known
        paths = self.paths(known)
        for module, path in zip(known, paths, strict=True):
            live_module = module.module()
            if live_module is not None:
                self._name_tensors_of(live_module, path)
        for (owner, name), (role, rows) in modules.latest.items():
            if known[owner].module() is None:
                self._names.update((row, (role, f"{paths[owner]}.{name}")) for row in rows)
        for row, (owner, role, name) in modules.noted.items():
            self._names.setdefault(row, (role, f"{paths[owner]}.{name}"))
        for moved in list(history.moves)[::-1]:
            for old, new in moved.stamps:
                self._name_as_moved(old, new)
        for reference in optimizers.seen.values():
            optimizer = reference()
            if optimizer is not None:
                self._name_state_of(optimizer)

    def _name_tensors_of(self, module: torch.nn.Module, path: str) -> None:
        for role, name, value in own_tensors(module):
            self._name(value, role, f"{path}.{name}")
            if role == "parameter" and gradient_of(value) is not None:
                self._name(gradient_of(value), "gradient", f"{path}.{name}.grad")

    def _name_as_moved(self, old: Stamp, new: Stamp) -> None:
        """Give the tensor that a move left behind the name of the one that it made."""
        if old[0] in self._rows.epochs and new[0] in self._rows.epochs:
            before, after = next(iter(old[1].values())), next(iter(new[1].values()))
            if after in self._names:
                self._names.setdefault(before, self._names[after])

    def _name_state_of(self, optimizer: Any) -> None:
        for parameter, key, value in states_of(optimizer):
            row = self._rows.row_of(parameter)
            name = self._names.get(-1 if row is None else row, ("", ""))[1]
            self._name(value, "optimizer-state", f"{name}.{key}" if name else str(key))

    def _name(self, tensor: Any, role: str, name: str) -> None:
        row = self._rows.row_of(tensor)
        if row is not None:
            self._names.setdefault(row, (role, name))

    def columns(self, rows: Array, text: Callable[[str], int]) -> tuple[Array, Array]:
        """Return role and name of each of the rows, which are in order."""
        role = np.full(len(rows), text(""), dtype=np.int32)
        name = role.copy()
        named_rows = np.array(sorted(self._names), dtype=np.int64)
        indexes = indexes_in(rows, named_rows)
        texts = [[*map(text, self._names[row])] for row in named_rows[indexes >= 0].tolist()]
        role[indexes[indexes >= 0]], name[indexes[indexes >= 0]] = np.array(texts, dtype=np.int32).reshape(-1, 2).T
        return role, name


def _expression_at(site: int, *, passed: bool) -> str:
    """Return the callee at a site, `net` of `net(x)`, or the first argument, `block` of `checkpoint(block, x)`.

    Empty if it is no plain path.
    """
    position = sites.position(site) if site >= 0 else None
    if position is None or files[position.code.co_filename] not in (USER, sites.LIBRARY):
        return ""
    _, call = node_of(position.code, position.instruction)
    expressions = (call.args if passed else [call.func]) if isinstance(call, ast.Call) else []
    return ast.unparse(expressions[0]) if expressions and is_path(expressions[0]) else ""
