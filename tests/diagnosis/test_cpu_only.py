"""What takes tensors on the CPU only: the tensor, the line that gave it and the edit, wherever it was refused."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence
from torch.utils.data import DataLoader, TensorDataset

import devtrace
from failing import culprit_of, error_of


def model() -> Any:
    return nn.Linear(5, 3).cuda()


def a_list_for_numpy() -> None:
    net, losses = model(), []
    for _ in range(3):
        losses.append(net(torch.rand(2, 5, device="cuda")).mean())
    np.mean(losses)


def a_list_without_gradients() -> None:
    losses = [torch.rand((), device="cuda") for _ in range(3)]
    np.mean(losses)


def a_part_of_a_list() -> None:
    losses = [model()(torch.rand(2, 5, device="cuda")).mean() for _ in range(3)]
    np.array(losses[-2:] + losses[:1])


def an_index_of_an_array() -> None:
    names = np.array(["ant", "bee", "cat"])
    guess = model()(torch.rand(2, 5, device="cuda")).argmax(1)
    names[guess]


def rows_of_an_array() -> None:
    net, out = model(), np.zeros((2, 3))
    out[:2] = net(torch.rand(2, 5, device="cuda"))


def scores_of_another_package() -> None:
    from sklearn.metrics import accuracy_score  # here: it takes a second and a half

    truth = [torch.zeros(2)]
    guess = [torch.ones(2, device="cuda")]
    accuracy_score(torch.cat(truth), torch.cat(guess))


def several_arguments_of_one_call() -> None:
    points = torch.rand(4, 2, device="cuda")
    np.stack([points[:, 0], points.cpu()[:, 0], points.sum(1) * 2, np.ones(4)])


def lengths_of_sequences() -> None:
    tokens = torch.ones(2, 4, 3, device="cuda")
    lengths = torch.tensor([4, 2]).cuda()
    pack_padded_sequence(tokens, lengths, batch_first=True)


def sections_of_a_tensor() -> None:
    sizes = torch.tensor([1, 3], device="cuda")
    torch.tensor_split(torch.rand(5, device="cuda"), sizes)


def a_restored_random_state() -> None:
    file = io.BytesIO()
    torch.save({"rng": torch.get_rng_state()}, file)
    file.seek(0)
    saved = torch.load(file, map_location="cuda")
    torch.set_rng_state(saved["rng"])


def pinned_data() -> None:
    data = TensorDataset(torch.rand(4, 2, device="cuda"))
    for _ in DataLoader(data, batch_size=2, pin_memory=True):
        pass


@pytest.mark.parametrize(
    ("program", "name", "edited"),
    [
        (a_list_for_numpy, "losses[0]", "np.mean([each.detach().cpu() for each in losses])"),
        (a_list_without_gradients, "losses[0]", "np.mean([each.cpu() for each in losses])"),
        (a_part_of_a_list, "losses[1]", "np.array([each.detach().cpu() for each in losses[-2:] + losses[:1]])"),
        (an_index_of_an_array, "guess", "names[guess.cpu()]"),
        (
            rows_of_an_array,
            'net(torch.rand(2, 5, device="cuda"))',
            'out[:2] = net(torch.rand(2, 5, device="cuda")).detach().cpu()',
        ),
        (
            scores_of_another_package,
            "torch.cat(guess)",
            "accuracy_score(torch.cat(truth), torch.cat(guess).detach().cpu())",
        ),
        (
            several_arguments_of_one_call,
            "points",
            "np.stack([points[:, 0].cpu(), points.cpu()[:, 0], (points.sum(1) * 2).detach().cpu(), np.ones(4)])",
        ),
        (lengths_of_sequences, "lengths", "pack_padded_sequence(tokens, lengths.cpu(), batch_first=True)"),
        (sections_of_a_tensor, "sizes", 'torch.tensor_split(torch.rand(5, device="cuda"), sizes.cpu())'),
        (a_restored_random_state, 'saved["rng"]', 'torch.set_rng_state(saved["rng"].cpu())'),
        (pinned_data, "data.tensors[0]", "for _ in DataLoader(data, batch_size=2, pin_memory=False):"),
    ],
)
def test_a_tensor_that_must_be_on_the_cpu_is_named_and_brought_there(
    program: Callable[[], object], name: str, edited: str
) -> None:
    finding = error_of(program)
    assert (finding.rule, finding.cause) == ("host-conversion", "host-boundary")
    assert culprit_of(finding).name == name
    assert finding.site is not None
    assert finding.site.file == __file__
    assert [edit.after.strip() for edit in finding.edits] == [edited]


def test_the_message_names_what_takes_tensors_on_the_cpu_only() -> None:
    assert error_of(lengths_of_sequences).message == (
        "`lengths` is on cuda:0; `pack_padded_sequence` takes lengths on the CPU only."
    )


def test_a_random_state_of_another_type_is_no_matter_of_devices() -> None:
    with pytest.raises(TypeError, match="ByteTensor"), devtrace.record(simulate="cuda:1") as recording:
        torch.set_rng_state(torch.zeros(8))
    assert not [found for found in recording.report.findings if found.severity == "error"]


def test_a_generator_of_a_device_takes_its_state_from_the_cpu_only() -> None:
    with devtrace.simulate("cuda:1"):
        state = torch.cuda.get_rng_state()
        torch.cuda.set_rng_state(state)
        with pytest.raises(TypeError, match="RNG state must be a"):
            torch.cuda.set_rng_state(state.cuda())


@pytest.mark.parametrize(
    "program",
    [a_list_without_gradients, scores_of_another_package, several_arguments_of_one_call, lengths_of_sequences],
)
def test_the_same_is_explained_where_nothing_was_recorded(program: Callable[[], object]) -> None:
    recorded = error_of(program)
    with devtrace.simulate("cuda:1"), pytest.raises((RuntimeError, TypeError)) as raised:
        program()
    found = devtrace.explain(raised.value).findings[0]
    assert (found.message, found.site, found.edits) == (recorded.message, recorded.site, recorded.edits)
