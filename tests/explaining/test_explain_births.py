"""Where a tensor was born, read from the source of what nobody recorded: through caches, defaults, lists and files."""

from __future__ import annotations

import copy
import functools
import io
from collections.abc import Callable, Iterable

import pytest
import torch
from torch import Tensor, nn

from failing import BOTH, Text, birth_of, culprit_of, edits_of, explained, fails


@functools.cache
def waves(length: int) -> torch.Tensor:
    table = torch.zeros(length)
    table[1:] = 1.0
    return table


@fails("untraced", born="table = torch.zeros(length)")
def test_a_cached_function_is_read_as_any_other() -> None:
    x = torch.ones(3, device="cuda:0")
    x + waves(3)


class Cells(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.cells = nn.ModuleList([nn.GRUCell(2, 2), nn.GRUCell(2, 2)])

    def initial(self, batch: int) -> list[torch.Tensor]:
        return [torch.zeros(batch, 2) for _ in self.cells]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        states = self.initial(len(x))
        for number, cell in enumerate(self.cells):
            x = states[number] = cell(x, states[number])
        return x


@fails("untraced", cause="created-without-device", born="return [torch.zeros(batch, 2) for _ in self.cells]")
def test_an_item_of_a_list_was_born_in_the_function_that_returned_the_list() -> None:
    Cells().to("cuda:0")(torch.ones(1, 2, device="cuda:0"))


MEAN = torch.tensor([0.5, 0.25])


def centred(x: torch.Tensor, mean: torch.Tensor = MEAN) -> torch.Tensor:
    return x - mean


@fails("untraced", born="MEAN = torch.tensor([0.5, 0.25])")
def test_a_parameter_that_was_not_given_is_born_where_its_default_is() -> None:
    centred(torch.ones(2, device="cuda:0"))


class Causal(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(2, 2)

    @property
    def mask(self) -> torch.Tensor:
        if not hasattr(self, "_mask"):
            self._mask = torch.full((2, 2), -1.0)
        return self._mask

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.as_tensor(self.layer(x) + self.mask)


@fails("untraced", edits=["self._mask = torch.full((2, 2), -1.0, device=next(self.parameters()).device)"])
def test_the_only_line_that_gives_an_attribute_its_value_is_edited() -> None:
    Causal().to("cuda:0")(torch.ones(2, 2, device="cuda:0"))


class Shifted(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(2, 2)
        self.shift = 0.5 ** torch.arange(2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        shift = self.shift[: len(x)]
        return torch.as_tensor(self.layer(x) + shift)


@fails("untraced", edits=['self.register_buffer("shift", 0.5 ** torch.arange(2), persistent=False)'])
def test_a_plain_attribute_is_registered_where_the_constructor_gives_it() -> None:
    net = Shifted()
    rows = net.shift + torch.ones(1, 2)  # before the move
    net.to("cuda:0")(rows.to("cuda:0"))


class Features(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.out = nn.Linear(4, 1)
        self.reset()

    def reset(self) -> None:
        self.w = torch.randn(3, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.as_tensor(self.out(x @ self.w))


@fails("untraced", cause="not-registered")
def test_what_a_method_of_the_constructor_made_is_no_cache_of_an_earlier_call() -> None:
    Features().to("cuda:0")(torch.ones(2, 3, device="cuda:0"))


def test_parameters_whose_data_was_replaced_were_not_missed_by_the_move() -> None:
    def program() -> None:
        device = "cuda:0"
        net = nn.Linear(3, 1).to(device)
        mean = {"weight": torch.ones(1, 3), "bias": torch.ones(1)}
        for name, parameter in net.named_parameters():
            parameter.data = mean[name]
        net(torch.ones(2, 3, device=device))

    finding = explained(program)
    assert finding.cause == "attached-after-move"
    assert "net.to(device)" not in edits_of(finding)


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(3, 4)
        self.hidden = torch.zeros(1, 1, 4)

    def first(self, batch: int) -> tuple[torch.Tensor, torch.Tensor]:
        return torch.zeros(1, batch, 4), torch.zeros(1, batch, 4)

    def forward(self, x: torch.Tensor, way: str) -> torch.Tensor:
        batch = x.shape[1]
        if way == "method":
            return torch.as_tensor(self.lstm(x, self.first(batch))[0])
        if way == "written":
            return torch.as_tensor(self.lstm(x, (torch.zeros(1, batch, 4), torch.zeros(1, batch, 4)))[0])
        hidden = self.hidden.expand(1, batch, 4).contiguous()
        return torch.as_tensor(self.lstm(x, (hidden, hidden))[0])


BIRTHS = {
    "method": "return torch.zeros(1, batch, 4), torch.zeros(1, batch, 4)",
    "written": "return torch.as_tensor(self.lstm(x, (torch.zeros(1, batch, 4), torch.zeros(1, batch, 4)))[0])",
    "attribute": "self.hidden = torch.zeros(1, 1, 4)",
}


@pytest.mark.parametrize("way", BIRTHS)
def test_the_states_that_a_layer_of_torchs_was_given_as_a_pair_were_born_in_the_users_code(way: str) -> None:
    finding = explained(lambda: Recurrent().to("cuda:0")(torch.rand(5, 2, 3, device="cuda:0"), way))
    assert birth_of(finding).text == BIRTHS[way]
    assert not any(").to(" in edit.after for edit in finding.edits)  # a pair has none


@fails("untraced", name="packed[0]", born=Text(begins="packed = nn.utils.rnn.pack_sequence("))
def test_the_tensor_of_a_variable_was_not_born_in_the_line_that_fails_over_it() -> None:
    net = nn.GRU(3, 5).to("cuda:0")
    packed = nn.utils.rnn.pack_sequence([torch.rand(n, 3) for n in (5, 3)])
    net(packed)


class Index:
    def __init__(self) -> None:
        self.rows = torch.empty(0, 3)

    def add(self, row: torch.Tensor) -> None:
        self.rows = torch.cat([self.rows, row.cpu()])

    def search(self, query: torch.Tensor) -> torch.Tensor:
        return query @ self.rows.T


@fails("untraced", cause="wrong-device", born="self.rows = torch.cat([self.rows, row.cpu()])")
def test_a_method_that_was_called_since_gave_an_attribute_its_value() -> None:
    index = Index()
    for _ in range(2):
        index.add(torch.ones(1, 3, device="cuda:0"))
    index.search(torch.ones(1, 3, device="cuda:0"))


def test_a_method_that_only_a_branch_calls_may_not_have_run() -> None:
    def program(full: bool = False) -> None:
        index = Index()
        if full:
            index.add(torch.ones(1, 3, device="cuda:0"))
        index.search(torch.ones(1, 3, device="cuda:0"))

    assert birth_of(explained(program)).text == "self.rows = torch.empty(0, 3)"


class Average:
    def __init__(self, model: nn.Module) -> None:
        self.model = copy.deepcopy(model)

    def update(self, model: nn.Module) -> None:
        for mine, theirs in zip(self.model.state_dict().values(), model.state_dict().values(), strict=True):
            mine.lerp_(theirs, 0.5)


@fails("untraced", cause="stale-copy", born="self.model = copy.deepcopy(model)")
def test_what_the_state_dict_of_a_copy_gives_is_a_copy_too() -> None:
    model = nn.Linear(2, 2)
    average = Average(model)
    model.to("cuda:0")
    average.update(model)


def without_mask(batch: tuple[torch.Tensor, torch.Tensor], device: str) -> tuple[torch.Tensor, torch.Tensor]:
    x, mask = batch
    return x.to(device), mask


@fails(
    "untraced",
    born="rows = [(torch.ones(2), torch.ones(2)) for _ in range(2)]",
    edits=["return x.to(device), mask.to(device)"],
)
def test_an_item_of_a_tuple_that_a_function_unpacked_was_born_where_the_tuple_was() -> None:
    rows = [(torch.ones(2), torch.ones(2)) for _ in range(2)]
    for batch in rows:
        x, mask = without_mask(batch, "cuda:0")
        x * mask


FILLERS: dict[str, Callable[..., torch.Tensor]] = {"ones": torch.ones, "eye": torch.eye}


def filled(name: str, *args: int, **options: object) -> torch.Tensor:
    return FILLERS[name](*args, **options)


@fails("untraced", name='filled("eye", 2)', born='torch.cat((x, filled("eye", 2)))')
def test_what_a_dispatcher_makes_is_born_at_the_line_that_calls_it() -> None:
    x = torch.ones(2, 2, device="cuda:0")
    torch.cat((x, filled("eye", 2)))


def weighed(x: torch.Tensor, soft: bool) -> torch.Tensor:
    if soft:
        weight = torch.zeros(len(x))
    else:
        x = x.abs()
        weight = x.sign()
    return weight


@fails("untraced", born="weight = torch.zeros(len(x))")
def test_a_branch_that_did_not_run_gave_nothing() -> None:
    x = torch.ones(3, device="cuda:0")
    x + weighed(x, True)


class Curve:
    def __init__(self) -> None:
        self.device = torch.device("cpu")

    def at(self, times: torch.Tensor) -> torch.Tensor:
        times = times.to(self.device)
        found = torch.zeros_like(times, device=self.device)
        found[1:] = 1.0
        return found


@fails("untraced", cause="wrong-device", born="found = torch.zeros_like(times, device=self.device)")
def test_a_parameter_that_a_function_moved_is_read_as_it_was_given() -> None:
    times, curve = torch.ones(3, device="cuda:0"), Curve()
    found = curve.at(times)
    times * found


@fails("untraced", born="scale = torch.zeros(3)")
def test_a_statement_over_several_lines_has_not_given_its_variable_yet() -> None:
    rate = torch.ones(3, device="cuda:0")
    scale = torch.zeros(3)
    scale = (
        scale
        .add(
            rate
            .abs()
        )
    )  # fmt: skip


class Momentum(torch.optim.Optimizer):
    def __init__(self, params: Iterable[torch.Tensor]) -> None:
        super().__init__(params, {})

    @torch.no_grad()
    def step(self) -> None:  # type: ignore[override]
        for weight in self.param_groups[0]["params"]:
            state = self.state[weight]
            if not state:
                state["mean"] = torch.zeros(weight.shape)
                state["square"] = torch.zeros(weight.shape)
            mean = state["mean"]
            mean.mul_(0.9).add_(weight.grad)


@fails(*BOTH, cause="created-without-device", born='state["mean"] = torch.zeros(weight.shape)')
def test_state_that_a_step_made_without_a_device_is_no_tensor_that_a_move_missed() -> None:
    net = nn.Linear(2, 2).to("cuda:0")
    optimizer = Momentum(net.parameters())
    net(torch.ones(1, 2, device="cuda:0")).sum().backward()
    optimizer.step()


class Sampler:
    def __init__(self) -> None:
        self.net = nn.Linear(2, 2).to("cuda:0")
        self.steps = 3

    def sample(self, count: int) -> torch.Tensor:
        x = torch.randn(count, 2)
        for _ in range(self.steps):
            x = x.to("cuda:0")
            x = (x - self.net(x)) / (1 + x.abs())
        return x

    def pick(self, count: int, greedy: bool = True) -> torch.Tensor:
        scores: torch.Tensor = self.net(torch.ones(count, 2, device="cuda:0"))
        if greedy:
            return scores.argmax(dim=1)
        return torch.multinomial(scores.softmax(1), 1)


@fails("untraced", edits=["sampler.sample(4).detach().cpu().numpy()"], message=Text("`sampler.sample(4)` is on cuda:0"))
def test_what_a_call_gave_is_converted_though_nobody_read_it() -> None:
    """A weight of the model that the call used is another tensor."""
    sampler = Sampler()
    sampler.sample(4).numpy()


@fails("untraced", born="return scores.argmax(dim=1)")
def test_what_follows_a_branch_that_returned_gave_nothing() -> None:
    sampler = Sampler()
    sampler.pick(4).numpy()


class Bank(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.filters = []
        for _ in range(2):
            self.filters.append(nn.Conv1d(1, 1, 3, padding=1))
        self.head = nn.Linear(8, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.filters:
            x = layer(x).relu()
        return self.head(x)  # type: ignore[no-any-return]


@fails(
    "untraced",
    cause="not-registered",
    edits=[
        "self.filters = nn.ModuleList([])",
        "bank(torch.ones(4, 1, 8, device=next(bank.parameters()).device))",
    ],
)
def test_what_layers_of_a_plain_list_computed_is_put_right_in_the_list() -> None:
    bank = Bank().to("cuda:0")
    bank(torch.ones(4, 1, 8))


def spread(x: torch.Tensor) -> torch.Tensor:
    a = x * 2
    b = (a - a.min()) / (a.max() - a.min()) + a.mean()
    c = (b - b.min()) / (b.max() - b.min()) + b.mean()
    d = (c - c.min()) / (c.max() - c.min()) + c.mean()
    return (d - d.min()) / (d.max() - d.min()) + d.mean()


@fails("untraced", born="table = torch.zeros(3, device=chosen)", cause="wrong-device")
def test_a_variable_that_others_use_more_than_once_is_read_once() -> None:
    """Read as often as it is used, it took all the steps that an explanation has."""
    chosen = torch.device("cuda")
    scale = spread(torch.ones(3, device="cuda:1"))
    table = torch.zeros(3, device=chosen)
    table = torch.lerp(table, scale, 0.5)


def saved() -> io.BytesIO:
    file = io.BytesIO()
    torch.save({"net": nn.Linear(3, 1).state_dict(), "scaler": {"mean": torch.zeros(3), "scale": torch.ones(3)}}, file)
    file.seek(0)
    return file


class Predictor:
    def __init__(self, file: io.BytesIO) -> None:
        checkpoint = torch.load(file, map_location="cpu")
        self.scaler = checkpoint["scaler"]

    def __call__(self, x: Tensor) -> Tensor:
        return x - self.scaler["mean"]  # type: ignore[no-any-return]


def of_a_checkpoint() -> None:
    Predictor(saved())(torch.ones(2, 3, device="cuda:0"))


def read(file: io.BytesIO) -> dict[str, Tensor]:
    bundle = torch.load(file, weights_only=True)
    return bundle["scaler"]  # type: ignore[no-any-return]


def of_a_function() -> None:
    scaler = read(saved())
    x = torch.ones(2, 3, device="cuda:0")
    x * scaler["scale"]


def of_a_variable() -> None:
    stored = torch.load(saved(), weights_only=True)
    torch.ones(2, 3, device="cuda:0") - stored["scaler"]["mean"]


@pytest.mark.parametrize(
    ("program", "line"),
    [
        (of_a_checkpoint, 'checkpoint = torch.load(file, map_location="cpu")'),
        (of_a_function, "bundle = torch.load(file, weights_only=True)"),
        (of_a_variable, "stored = torch.load(saved(), weights_only=True)"),
    ],
)
def test_a_tensor_that_was_loaded_was_made_by_that_line(program: Callable[[], None], line: str) -> None:
    error = explained(program)
    assert culprit_of(error).born is not None, error.message
    assert birth_of(error).text == line
    assert not any("torch.zeros" in name for name in culprit_of(error).names)
