"""torch's words stand in one table, which agrees with what torch's own schemas say."""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator
from pathlib import Path
from types import BuiltinFunctionType
from typing import Any, Final

import numpy as np
import pytest
import torch
from torch.nn import functional

from devtrace.source import vocabulary
from trees import parsed

SOURCES: Final = Path(__file__).parents[2] / "src" / "devtrace"
NO_QUESTION: Final = (
    "report/palette.py",  # colours of devices
    "simulation/",  # what it replaces in torch, one by one
    "recording/columns/operator_info.py",  # operators of the dispatcher, by their schemas' names
    "trace/op_kinds.py",
    "source/vocabulary.py",
    "source/element_types.py",  # the vocabulary's words for dtypes
    "diagnosis/slugs.py",
)
"""Lists of torch's names that answer no question about a program's source."""
LISTS_ELSEWHERE: Final = 0
"""Lists of torch's names outside of the vocabulary. It only falls."""


def of_torch(name: str) -> bool:
    owners = (torch, torch.Tensor, torch.nn.Module, functional, torch.cuda)
    return any(callable(getattr(owner, name.rpartition(".")[2], None)) for owner in owners)


def lists_of_torchs_names() -> Iterator[str]:
    for path in sorted(SOURCES.rglob("*.py")):
        file = str(path.relative_to(SOURCES))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Tuple | ast.List | ast.Set):
                continue
            names = [each.value for each in node.elts if isinstance(each, ast.Constant) and isinstance(each.value, str)]
            if sum(map(of_torch, names)) >= 3 and not file.startswith(NO_QUESTION):
                yield f"{file}:{node.lineno}: {' '.join(names)}"


def test_no_list_of_torchs_names_is_outside_of_the_vocabulary() -> None:
    found = list(lists_of_torchs_names())
    assert len(found) <= LISTS_ELSEWHERE, "\n".join(found)


def schemas() -> Iterator[tuple[str, Any]]:
    for schema in torch._C._jit_get_all_schemas():
        name = schema.name.removeprefix("aten::")
        if schema.name.startswith("aten::") and not name.startswith("_") and "out" not in map(_name, schema.arguments):
            yield name, schema


def _name(argument: Any) -> str:
    return str(argument.name)


def _tensors(arguments: Any) -> list[Any]:
    return [each for each in arguments if "Tensor" in str(each.type)]


def test_what_takes_a_device_and_no_tensor_makes() -> None:
    takes_device = {
        name
        for name, schema in schemas()
        if hasattr(torch, name) and not _tensors(schema.arguments) and "device" in map(_name, schema.arguments)
    }
    assert takes_device - {"Generator", "range"} <= vocabulary.MAKES  # `range` is Python's in nearly every program
    assert all(callable(getattr(torch, name)) for name in vocabulary.MAKES | vocabulary.MAKES_ON_HOST)


def test_what_takes_a_device_beside_a_tensor_makes_one_like_it_or_moves_it() -> None:
    like = {
        name
        for name, schema in schemas()
        if hasattr(torch, name) and _tensors(schema.arguments) and "device" in map(_name, schema.arguments)
    }
    assert [name for name in like if not vocabulary.is_factory(name) and name not in ("to", "empty_quantized")] == []


def test_what_takes_a_list_of_tensors_alone_and_is_no_python_function_joins_them() -> None:
    takes = [(name, schema.arguments[0].type if schema.arguments else None) for name, schema in schemas()]
    others = {name for name, first in takes if str(first) != "List[Tensor]"}
    named = {name: getattr(torch, name, None) for name, _ in takes if name not in others}
    joins = {name for name, function in named.items() if isinstance(function, BuiltinFunctionType)}
    assert joins == vocabulary.JOINS


def test_methods_that_share_memory_are_views_or_copies_that_may_be_none() -> None:
    shares = {
        name
        for name, schema in schemas()
        if hasattr(torch.Tensor, name)
        and callable(getattr(torch.Tensor, name))
        and schema.arguments
        and (first := schema.arguments[0].alias_info) is not None
        and not first.is_write
        and schema.returns
        and schema.returns[0].alias_info is not None
    }
    of_sparse = {"ccol_indices", "coalesce", "col_indices", "crow_indices", "indices", "row_indices", "values"}
    moves = {name for name in shares if vocabulary.is_move(name)}
    assert shares - of_sparse - moves - {"pin_memory", "slice_inverse"} <= vocabulary.VIEWS | vocabulary.COPIES


@pytest.mark.parametrize(
    "words", ["VIEWS", "COPIES", "READS", "DESCRIBES", "FACTS", "PARTS", "OF_MODULES", "DRAWS", "PICKS"]
)
def test_every_word_is_one_of_torchs(words: str) -> None:
    known = {*dir(torch.Tensor), *dir(torch), *dir(torch.nn.Module), *dir(torch.ops.aten), "alias", "slice"}
    assert set(getattr(vocabulary, words)) - known == set()


@pytest.mark.parametrize(
    ("name", "does"),
    [
        ("to", "moves leaves gives-itself"),
        ("cuda", "moves leaves gives-itself"),
        ("npu", "moves leaves gives-itself"),
        ("type_as", "moves leaves gives-itself"),
        ("half", "gives-itself"),
        ("item", "leaves"),
        ("numel", "leaves"),
        ("len", "leaves"),
        ("zeros", "makes"),
        ("new_zeros", "makes leaves"),
        ("zeros_like", "makes"),
        ("add_", "changes"),
        ("__add__", ""),
        ("relu", ""),
        ("is_floating_point", "leaves"),
    ],
)
def test_a_word_is_of_these_kinds(name: str, does: str) -> None:
    asked = {
        "moves": vocabulary.is_move,
        "makes": vocabulary.is_factory,
        "changes": vocabulary.changes_itself,
        "leaves": vocabulary.leaves_device,
        "gives-itself": vocabulary.gives_itself,
    }
    assert sorted(word for word, is_so in asked.items() if is_so(name)) == sorted(does.split())


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("import torch\ntorch.zeros", "torch.zeros"),
        ("import torch as T\nT.zeros", "torch.zeros"),
        ("from torch import zeros as z\nz", "torch.zeros"),
        ("import torch.nn.functional as fn\nfn.relu", "torch.nn.functional.relu"),
        ("from torch import nn\nnn.init.normal_", "torch.nn.init.normal_"),
        ("import os.path\nos.path.join", "os.path.join"),
        ("np.zeros", "numpy.zeros"),
        ("F.relu", "torch.nn.functional.relu"),
        ("model.relu", ""),
        ("f().zeros", ""),
        ("arrays.zeros", "numpy.zeros"),
        ("make", "torch.zeros"),
        ("math.sin", ""),
    ],
)
def test_a_name_is_what_its_import_makes_of_it_and_not_how_it_is_spelled(text: str, name: str) -> None:
    source = parsed(text)
    variables = {"arrays": np, "make": torch.zeros, "math": 3, "model": torch.nn.ReLU()}
    last = source.tree.body[-1]
    assert isinstance(last, ast.Expr)
    assert vocabulary.full_name(last.value, source, variables) == name


def test_a_function_of_torchs_has_its_own_name_and_others_have_none() -> None:
    names = map(vocabulary.torch_name, (torch.zeros, torch.Tensor.to, torch.stack, functional.relu, torch.ones(1).sum))
    assert list(names) == ["zeros", "to", "stack", "relu", "sum"]
    assert {vocabulary.torch_name(each) for each in (math.sin, np.zeros, len, parsed, torch, 3)} == {""}
