"""Evidence: what a cause, a rule or a fix reads, from small traces made by hand."""

from __future__ import annotations

import ast

import pytest

from devtrace.api.results import Trace
from devtrace.diagnosis.edits import Code
from devtrace.diagnosis.evidence import modules
from devtrace.diagnosis.evidence.failing_moment import FailingMoment
from devtrace.diagnosis.evidence.mismatch import Mismatch, find_mismatch
from devtrace.diagnosis.evidence.mismatch_case import MismatchCase
from devtrace.diagnosis.evidence.missed_moves import moves_of_lineage
from devtrace.diagnosis.evidence.moves import move_of, moves_from, moves_of
from devtrace.diagnosis.evidence.origins import factory_call, find_origin, lineage, trait_argument
from devtrace.diagnosis.evidence.source_text import assigned_names
from devtrace.diagnosis.evidence.trace_queries import SourceNode, TraceQueries
from devtrace.diagnosis.evidence.trait import DEVICE
from devtrace.diagnosis.findings import Site
from devtrace.trace.ids import OpId
from samples import Sample
from traces import head_trace
from trees import parsed

CPU, FIRST, SECOND = "cpu", "cuda:0", "cuda:1"


def queries(sample: Sample) -> TraceQueries:
    return TraceQueries(Trace.of(sample.builder.build()))


def case_of(asked: TraceQueries, op: OpId) -> MismatchCase:
    mismatch = find_mismatch(asked, op)
    assert mismatch is not None
    return MismatchCase.of(asked, FailingMoment(asked), mismatch)


def code(text: str) -> SourceNode:
    """Return the first call in a line of code."""
    source = parsed(text, "<test>")
    found = next(each for each in ast.walk(source.tree) if isinstance(each, ast.Call))
    return SourceNode(Code(source, Site("<test>", 1)), found, source.tree.body[0])


# Modules.


def test_of_a_module_it_is_known_who_moved_it_and_where_its_tensors_are() -> None:
    asked = TraceQueries(head_trace())
    head, model = modules.named(asked, "model.out_head"), modules.named(asked, "model")
    assert modules.around(asked, head) == [head, model]
    assert [str(move.site) for move in modules.moves(asked, head)] == ["In[4] line 1"]
    below = {name: asked.device(row) for name, row in modules.tensors(asked, "parameter", below="model.out_head")}
    assert below == {"model.out_head.bias": CPU, "model.out_head.weight": CPU}
    assert [asked.module(OpId(op)) for op in (-1, 0, 3)] == [-1, -1, head]
    assert asked.outermost_calls.tolist() == [-1, 0, 0, 0]


def test_of_modules_that_had_a_path_one_after_the_other_the_last_counts() -> None:
    sample = Sample()
    for _ in range(2):
        sample.builder.append("modules", path="net.act", parent=-1, site=-1, op=-1)
    asked = queries(sample)
    assert modules.named(asked, "net.act") == 1
    assert modules.named(asked, "") == modules.named(asked, "net") == -1


# The odd tensor.


def test_the_odd_tensor_is_the_one_on_the_cpu() -> None:
    sample = Sample()
    x, weight, bias = sample.tensor(FIRST, 4), sample.tensor(CPU, 4), sample.tensor(CPU, 4, role="buffer")
    op = sample.op("aten.add.Tensor", FIRST, inputs=(x, weight, bias))
    assert find_mismatch(queries(sample), op) == Mismatch(op, weight, CPU, FIRST, (bias,))


def test_a_bias_is_named_only_if_nothing_else_is_odd() -> None:
    sample = Sample()
    bias = sample.tensor(CPU, 4, role="parameter", name="model.bias")
    weight = sample.tensor(CPU, 4, 4, role="parameter", name="model.weight")
    op = sample.op("aten.addmm.default", FIRST, inputs=(bias, sample.tensor(FIRST, 2, 4), weight))
    found = find_mismatch(queries(sample), op)
    assert found is not None
    assert (found.odd_tensor, found.others_of_odd_trait) == (weight, (bias,))


def test_an_index_on_the_cpu_is_legal() -> None:
    sample = Sample()
    op = sample.op("aten.index.Tensor", FIRST, inputs=(sample.tensor(FIRST, 4), sample.tensor(CPU, 4)))
    assert find_mismatch(queries(sample), op) is None


def test_a_number_on_the_cpu_is_blamed_only_if_nothing_else_can_be() -> None:
    sample = Sample()
    number, x, y = sample.tensor(CPU), sample.tensor(FIRST, 4), sample.tensor(CPU, 4)
    beside = sample.op("aten.where.self", FIRST, inputs=(number, x, y))
    alone = sample.op("aten.where.self", FIRST, inputs=(number, x))
    found = [find_mismatch(queries(sample), op) for op in (beside, alone)]
    assert [mismatch and mismatch.odd_tensor for mismatch in found] == [y, number]


def test_of_two_accelerators_the_odd_one_is_where_the_fewest_ops_computed() -> None:
    sample = Sample()
    x, y = sample.tensor(FIRST, 4), sample.tensor(SECOND, 4)
    for device in (SECOND, SECOND, FIRST):
        sample.op("aten.relu.default", device)
    op = sample.op("aten.add.Tensor", FIRST, inputs=(x, y))
    found = find_mismatch(queries(sample), op)
    assert found is not None
    assert (found.odd_trait, found.expected_trait) == (FIRST, SECOND)


def test_where_one_input_was_copied_from_the_others_device_the_other_was_left_behind() -> None:
    sample = Sample()
    site = sample.site(1, "x.to(second)")
    x = sample.tensor(FIRST, 4)
    for _ in range(3):
        sample.op("aten.relu.default", FIRST)
    moved = sample.copy(x, SECOND, site)
    op = sample.op("aten.add.Tensor", SECOND, inputs=(sample.tensor(FIRST, 4), moved))
    found = find_mismatch(queries(sample), op)
    assert found is not None
    assert (found.odd_trait, found.expected_trait) == (FIRST, SECOND)


# How a tensor came to its device.


def test_a_tensor_of_a_factory_was_made() -> None:
    sample = Sample()
    x = sample.tensor(CPU, 4, producer=0)
    sample.op("aten.ones.default", CPU, kind="create", outputs=(x,))
    y = sample.tensor(CPU, 4, producer=1)
    sample.op("aten.relu.default", CPU, inputs=(x,), outputs=(y,))
    origin = find_origin(queries(sample), y)
    assert (origin.arrival, origin.row, origin.path) == ("made", x, (y, x))


def test_a_copy_from_another_device_was_copied_and_what_no_op_made_was_given() -> None:
    sample = Sample()
    x = sample.tensor(FIRST, 4)
    y = sample.copy(x, CPU, sample.site(1, "x.cpu()"))
    asked = queries(sample)
    assert find_origin(asked, y).arrival == "copied"
    assert find_origin(asked, x).arrival == "given"


def test_a_computed_tensor_is_followed_to_the_preferred_parent_else_to_the_largest() -> None:
    sample = Sample()
    small, large = sample.tensor(CPU, 2), sample.tensor(CPU, 9)
    y = sample.tensor(CPU, 9, producer=0)
    sample.op("aten.add.Tensor", CPU, inputs=(small, large), outputs=(y,))
    asked = queries(sample)
    assert find_origin(asked, y).row == large
    assert find_origin(asked, y, frozenset({small})).row == small


@pytest.mark.parametrize(
    ("text", "given"),
    [
        ("torch.zeros(3, device=d)", True),
        ("torch.zeros(3)", False),
        ("torch.zeros(3, device=None)", False),
        ("torch.ones(3, device=d).triu(1)", True),
        ("model(x, device=d)", False),
    ],
)
def test_a_factory_with_a_device_is_known_by_its_call(text: str, given: bool) -> None:
    assert (trait_argument(code(text), DEVICE) is not None) is given
    assert (factory_call(code(text)) is None) is text.startswith("model")


@pytest.mark.parametrize(
    ("text", "names"),
    [("q = f(x)", ["q"]), ("q, k = f(x)", ["k"]), ("q = k = f(x)", ["q", "k"]), ("g(f(x))", [])],
)
def test_the_names_that_a_statement_assigns(text: str, names: list[str]) -> None:
    assert assigned_names(code(text), 1) == names


# Moves.


def test_the_last_move_comes_first_and_a_view_is_moved_with_its_base() -> None:
    sample = Sample()
    site = sample.site(1, "model.to(device)")
    first, second = sample.tensor(CPU, 4), sample.tensor(CPU, 4)
    view = sample.tensor(CPU, 2, source=first, producer=0)
    sample.op("aten.slice.Tensor", CPU, kind="view", inputs=(first,), outputs=(view,))
    moved = [sample.copy(row, FIRST, site) for row in (view, second)]
    asked = queries(sample)
    assert [move.result for move in moves_of(asked, moved)] == moved[::-1]
    assert [move.source for move in moves_from(asked, {first}, FIRST, before=OpId(9))] == [view]
    assert move_of(asked, first) is None


# Who owns it, by recorded names.


def partly_moved(role: str) -> MismatchCase:
    """A model whose weight moved, and whose other tensor was made after that."""
    sample = Sample()
    site = sample.site(1, "model.to(device)")
    late = sample.tensor(CPU, 4, role=role, name="model.other", producer=1)
    weight = sample.copy(sample.tensor(CPU, 4, role="parameter", name="model.weight"), FIRST, site)
    named = sample.tensor(FIRST, 4, role="parameter", name="model.weight", source=weight)
    sample.op("aten.ones.default", CPU, kind="create", outputs=(late,))
    op = sample.op("aten.add.Tensor", FIRST, inputs=(named, late))
    return case_of(queries(sample), op)


def test_a_parameter_that_was_made_after_the_move_of_its_module_is_newer() -> None:
    owner = partly_moved("parameter").ownership
    assert owner is not None
    assert owner.last_move is not None
    assert owner.is_newer_than_the_move
    assert not owner.is_live
    assert not owner.was_moved_as_a_whole


def test_an_attribute_is_recorded_as_not_registered() -> None:
    case = partly_moved("attribute")
    assert case.ownership is not None
    assert not case.ownership.is_registered


def test_nobody_owns_a_passing_value() -> None:
    assert partly_moved("").ownership is None


# What it is a copy of.


def test_a_copy_of_a_parameter_that_moved_later_knows_the_move() -> None:
    sample = Sample()
    site = sample.site(1, "model.to(device)")
    weight = sample.tensor(CPU, 4, role="parameter", name="model.weight")
    early = sample.tensor(CPU, 4, source=weight, producer=0)
    sample.op("aten.clone.default", CPU, kind="copy", inputs=(weight,), outputs=(early,))
    moved = sample.copy(weight, FIRST, site)
    named = sample.tensor(FIRST, 4, role="parameter", name="model.weight", source=moved)
    op = sample.op("aten.sub.Tensor", FIRST, inputs=(named, early))
    case = case_of(queries(sample), op)
    assert lineage(case.queries, case.row) == [early, weight]
    assert [move.result for move in moves_of_lineage(case)] == [moved]
