"""Programs that collect tensors on the device."""

import copy
from functools import cache
from queue import Queue
from typing import Any, NamedTuple

import torch
from torch import nn


class Step(NamedTuple):
    state: torch.Tensor
    after: torch.Tensor


class Buffer:
    def __init__(self) -> None:
        self.steps: list[Step] = []

    def push(self, *parts: torch.Tensor) -> None:
        self.steps.append(Step(*parts))


def buffer_of_steps(device: str) -> None:
    """A buffer of named tuples."""
    buffer = Buffer()
    state = torch.rand(256, 256, device=device)
    for _ in range(300):
        after = torch.rand(256, 256, device=device)
        buffer.push(state, after)
        state = after


@torch.no_grad()
def cache_that_grows(device: str) -> None:
    """Keys of all positions are joined into one tensor, token by token."""
    keys = nn.Linear(64, 1024).to(device)
    cache = torch.zeros(64, 0, 1024, device=device)
    for _ in range(400):
        token = torch.randn(64, 1, 64, device=device)
        cache = torch.cat([cache, keys(token)], dim=1)
    print(cache.shape)


@cache
def table(length: int, device: str) -> torch.Tensor:
    angles = torch.arange(length, device=device)[:, None] / torch.arange(1, 257, device=device)
    return angles.sin()


def cached_function(device: str) -> None:
    """Position tables are remembered by a cache, one for each length."""
    total = 0.0
    for length in range(1000, 1100):
        total += float(table(length, device).sum())
    print(total)


FEATURES: dict[int, torch.Tensor] = {}


def features(number: int, encoder: nn.Module, device: str) -> torch.Tensor:
    if number not in FEATURES:
        with torch.no_grad():
            FEATURES[number] = encoder(torch.randn(512, 64, device=device))
    return FEATURES[number]


def features_in_a_module_variable(device: str) -> None:
    """Features are remembered for the life of the process, in a dictionary of the module."""
    encoder = nn.Linear(64, 1024).to(device)
    for number in range(40):
        features(number, encoder, device)


def watch(layer: nn.Module) -> list[torch.Tensor]:
    seen: list[torch.Tensor] = []
    layer.register_forward_hook(lambda module, inputs, output: seen.append(output))
    return seen


def hooks_that_collect(device: str) -> None:
    """Hooks collect the outputs of a layer for a plot."""
    net = nn.Sequential(nn.Linear(64, 1024), nn.ReLU(), nn.Linear(1024, 8)).to(device)
    shown = watch(net[0])
    with torch.no_grad():
        for _ in range(40):
            net(torch.randn(512, 64, device=device))
    print(len(shown))


class Probe:
    def __init__(self, model: nn.Module) -> None:
        self.seen: dict[str, list[torch.Tensor]] = {}
        for name, module in model.named_children():
            module.register_forward_hook(self.hook(name))

    def hook(self, name: str) -> Any:
        def keep(module: nn.Module, inputs: tuple[torch.Tensor, ...], output: torch.Tensor) -> None:
            self.seen.setdefault(name, []).append(output)

        return keep


def hooks_that_the_model_keeps(device: str) -> None:
    """A probe that its variable no longer needs to keep: the model's hooks do."""
    net = nn.Sequential(nn.Linear(64, 1024), nn.ReLU(), nn.Linear(1024, 8)).to(device)
    probe = Probe(net)  # noqa: F841
    for _ in range(30):
        net(torch.randn(256, 64, device=device)).mean().backward()


def queue_of_batches(device: str) -> None:
    """A queue is filled with batches that are on the device already."""
    net = nn.Linear(4096, 64).to(device)
    batches: Queue[torch.Tensor] = Queue()
    for _ in range(40):
        batches.put(torch.randn(128, 4096).to(device))
    total = torch.zeros((), device=device)
    with torch.no_grad():
        while not batches.empty():
            total += net(batches.get()).mean()


def weights_of_each_epoch(device: str) -> None:
    """Weights of every epoch are remembered, where the best would do."""
    model = nn.Sequential(*[nn.Linear(512, 512) for _ in range(4)]).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, foreach=False)
    weights: dict[int, dict[str, torch.Tensor]] = {}
    for epoch in range(12):
        optimizer.zero_grad()
        model(torch.randn(64, 512, device=device)).pow(2).mean().backward()
        optimizer.step()
        weights[epoch] = {name: p.detach().clone() for name, p in model.named_parameters()}


def copies_of_each_epoch(device: str) -> None:
    """A copy of the model is kept after each epoch; nothing but their number is read."""
    model = nn.Sequential(nn.Linear(512, 512), nn.Tanh(), nn.Linear(512, 512)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    kept = []
    for _ in range(16):
        x = torch.randn(16, 512, device=device)
        optimizer.zero_grad()
        (model(x) - x).abs().mean().backward()
        optimizer.step()
        kept.append(copy.deepcopy(model))
    print(len(kept))


class Sweep:
    def __init__(self) -> None:
        self.errors: dict[int, Exception] = {}

    def attempt(self, width: int, device: str) -> None:
        first = nn.Linear(64, width).to(device)
        hidden = first(torch.randn(2048, 64, device=device))
        second = nn.Linear(1000, 10).to(device)
        print(second(hidden).shape)

    def over(self, widths: range, device: str) -> None:
        for width in widths:
            try:
                self.attempt(width, device)
            except RuntimeError as problem:
                if isinstance(problem, torch.OutOfMemoryError):
                    raise
                self.errors[width] = problem


def errors_of_a_sweep(device: str) -> None:
    """A sweep goes on after a bad setting, and its report keeps the error that it met."""
    Sweep().over(range(500, 520), device)


def thousands_of_rows(device: str) -> None:
    """Each row is a tensor of its own."""
    rows = [torch.zeros(1024, device=device) for _ in range(20_000)]  # noqa: F841
