"""Programs whose loops keep more with each step."""

import collections
import copy
from copy import deepcopy
from typing import Any, NamedTuple

import torch
from torch import nn


def losses_of_a_validation(device: str) -> None:
    """Losses of a validation are added up with their graphs."""
    model = nn.Sequential(nn.Linear(64, 1024), nn.Tanh(), nn.Linear(1024, 64)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(2):
        x = torch.randn(256, 64, device=device)
        optimizer.zero_grad()
        (model(x) - x).square().mean().backward()
        optimizer.step()
    total = torch.zeros((), device=device)
    for _ in range(20):
        batch = torch.randn(256, 64, device=device)
        total += (model(batch) - batch).square().mean()


def losses_of_few_batches(device: str) -> None:
    """A validation of few batches adds up its losses with their graphs, of several layers each."""
    model = nn.Sequential(nn.Linear(64, 1024), nn.GELU(), nn.Linear(1024, 64)).to(device)
    total = torch.zeros((), device=device)
    for _ in range(9):
        batch = torch.randn(512, 64, device=device)
        total = total + (model(batch) - batch).square().mean()
    print(total.item() > 99)


@torch.no_grad()
def losses_in_the_memory_of_all(device: str) -> None:
    """Losses of a validation have no graph, but each has the memory of all elements, which torch reduced in place."""
    net = nn.Linear(256, 256).to(device)
    losses = []
    for _ in range(40):
        x = torch.randn(512, 256, device=device)
        losses.append(nn.functional.mse_loss(net(x), x))
    torch.stack(losses).mean()


class Log:
    def __init__(self) -> None:
        self.values: dict[str, list[object]] = collections.defaultdict(list)

    def note(self, **values: object) -> None:
        for name, value in values.items():
            self.values[name].append(value)


def terms_in_a_dictionary(device: str) -> None:
    """A term that no backward pass runs through is logged beside the loss."""
    body = nn.Sequential(nn.Linear(64, 512), nn.GELU(), nn.Linear(512, 64)).to(device)
    judge = nn.Sequential(nn.Linear(64, 1024), nn.GELU(), nn.Linear(1024, 1)).to(device)
    optimizer = torch.optim.SGD(body.parameters(), lr=0.01)
    notes = Log()
    for _ in range(20):
        x = torch.randn(256, 64, device=device)
        out = body(x)
        loss = (out - x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        notes.note(loss=loss.item(), judged=judge(out.detach()).mean())


def terms_beside_a_backward(device: str) -> None:
    """A loss runs backward and keeps its graph; a term of the same output is kept for a plot."""
    encoder = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 64)).to(device)
    optimizer = torch.optim.AdamW(encoder.parameters())
    curve: dict[str, list[object]] = {"recon": [], "smooth": []}
    for _ in range(40):
        x = torch.randn(128, 64, device=device)
        y = encoder(x)
        recon = (y - x).pow(2).mean()
        smooth = (y[1:] - y[:-1]).abs().mean()
        optimizer.zero_grad()
        recon.backward(retain_graph=True)
        optimizer.step()
        curve["recon"].append(recon.item())
        curve["smooth"].append(smooth)


class Scores(NamedTuple):
    depth: torch.Tensor
    edges: torch.Tensor


class TwoHeads:
    def __init__(self, device: str) -> None:
        self.body = nn.Sequential(nn.Linear(48, 384), nn.SiLU(), nn.Linear(384, 384), nn.SiLU()).to(device)
        self.depth, self.edges = (nn.Linear(384, 24).to(device) for _ in range(2))
        self.sgd = torch.optim.SGD(self.body.parameters(), lr=0.05)
        self.shown: list[Scores] = []

    def step(self, batch: torch.Tensor) -> Scores:
        features = self.body(batch)
        scores = Scores(self.depth(features).square().mean(), self.edges(features).abs().mean())
        self.sgd.zero_grad()
        scores.depth.backward(retain_graph=True)
        scores.edges.backward(retain_graph=True)
        self.sgd.step()
        return scores


def scores_of_two_passes(device: str) -> None:
    """Two heads run backward one after the other through a body that both need; what the second gave is kept."""
    trainer = TwoHeads(device)
    for _ in range(30):
        scores = trainer.step(torch.randn(192, 48, device=device))
        trainer.shown.append(scores)


def attempt(model: nn.Module, size: int, device: str) -> Any:
    hidden = model(torch.randn(size, 512, device=device))
    if size > 1:
        raise ValueError(f"no room for {size}")
    return hidden


def errors_of_attempts(device: str) -> int:
    """A sweep keeps the exceptions of its attempts, and these keep the tensors of their frames."""
    model = nn.Linear(512, 2048).to(device)
    outcome: dict[int, Any] = {}
    for number in range(30):
        try:
            outcome[number] = attempt(model, 512, device)
        except ValueError as problem:
            outcome[number] = problem
    return len(outcome)


BANK: list[torch.Tensor] = []


def features_of_a_gallery(device: str) -> None:
    """Features of a whole gallery stay on the device."""
    encoder = nn.Linear(64, 1024).to(device)
    for _ in range(30):
        with torch.no_grad():
            features = encoder(torch.randn(256, 64).to(device))
        BANK.append(features)


def states_by_deepcopy(device: str) -> None:
    """Each epoch's state is remembered by a deep copy."""
    model = nn.Sequential(nn.Linear(256, 1024), nn.GELU(), nn.Linear(1024, 256)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    history = []
    for _ in range(16):
        optimizer.zero_grad()
        model(torch.randn(32, 256, device=device)).square().mean().backward()
        optimizer.step()
        history.append(copy.deepcopy(model.state_dict()))


SNAPSHOTS: dict[int, dict[str, torch.Tensor]] = {}


def snapshot(model: nn.Module, epoch: int) -> None:
    SNAPSHOTS[epoch] = {key: value.clone() for key, value in model.state_dict().items()}


def states_by_name(device: str) -> None:
    """Snapshots by epoch, of clones of the state."""
    model = nn.Sequential(nn.Linear(512, 512), nn.BatchNorm1d(512), nn.Linear(512, 512)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for epoch in range(14):
        for _ in range(2):
            optimizer.zero_grad()
            model(torch.randn(16, 512, device=device)).abs().mean().backward()
            optimizer.step()
        snapshot(model, epoch)


class Trainer:
    def __init__(self, device: str) -> None:
        self.net = nn.Sequential(nn.Linear(512, 512), nn.SiLU(), nn.Linear(512, 512)).to(device)
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.01, momentum=0.9)
        self.log: dict[str, list[Any]] = {"loss": [], "state": []}

    def epoch(self, x: torch.Tensor) -> None:
        loss = (self.net(x) - x).abs().mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.log["loss"].append(loss.item())
        self.log["state"].append(deepcopy(self.net.state_dict()))


def deep_copies_of_a_trainer(device: str) -> None:
    """A trainer remembers a deep copy of its state after each epoch."""
    trainer = Trainer(device)
    for _ in range(14):
        trainer.epoch(torch.randn(16, 512, device=device))
    print(len(trainer.log["state"]))


class Noise:
    def __init__(self) -> None:
        self.steps: list[list[torch.Tensor]] = []

    def look(self, net: nn.Module) -> None:
        self.steps.append([p.grad.clone() for p in net.parameters() if p.grad is not None])


def gradients_of_steps(device: str) -> None:
    """Gradients of each step are collected for a plot of their noise."""
    net = nn.Sequential(nn.Linear(512, 512), nn.Tanh(), nn.Linear(512, 512)).to(device)
    optimizer = torch.optim.Adam(net.parameters())
    noise = Noise()
    for _ in range(20):
        net(torch.randn(32, 512, device=device)).square().mean().backward()
        noise.look(net)
        optimizer.step()
        optimizer.zero_grad()


def flat(net: nn.Module) -> torch.Tensor:
    return torch.cat([p.grad.reshape(-1) for p in net.parameters() if p.grad is not None])


def gradients_until_their_spread(device: str) -> None:
    """Gradients of all steps are kept, and their spread is computed when the last is there."""
    net = nn.Sequential(nn.Linear(128, 1024), nn.GELU(), nn.Linear(1024, 128)).to(device)
    seen = {}
    for step in range(24):
        for p in net.parameters():
            p.grad = None
        net(torch.randn(16, 128, device=device)).square().mean().backward()
        seen[step] = flat(net)
    torch.stack(list(seen.values())).var(0).mean()


def copies_of_better_models(device: str) -> None:
    """Each epoch's model is copied into a list, of which only the length is asked for."""
    model = nn.Sequential(nn.Linear(256, 1024), nn.ReLU(), nn.Linear(1024, 256)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    best = []
    for _ in range(16):
        x = torch.randn(32, 256, device=device)
        optimizer.zero_grad()
        (model(x) - x).square().mean().backward()
        optimizer.step()
        best.append(copy.deepcopy(model))
    print(len(best))


class Fit:
    def __init__(self, device: str) -> None:
        self.net = nn.Sequential(nn.Linear(512, 512), nn.Tanh(), nn.Linear(512, 16)).to(device)
        self.optimizer = torch.optim.Adam(self.net.parameters())
        self.snapshots: dict[int, nn.Module] = {}

    def epoch(self, number: int, x: torch.Tensor) -> None:
        self.optimizer.zero_grad()
        self.net(x).square().mean().backward()
        self.optimizer.step()
        self.snapshots[number] = deepcopy(self.net)


def copies_of_a_fit(device: str) -> None:
    """A fit keeps a copy of its net after each epoch, and the last of them predicts."""
    fit = Fit(device)
    for number in range(20):
        fit.epoch(number, torch.randn(32, 512, device=device))
    fit.snapshots[19](torch.zeros(1, 512, device=device))


def codes_of_epochs(device: str) -> int:
    """Each epoch's list begins anew, and a dictionary keeps those of all epochs with their graphs."""
    encoder, codes = nn.Linear(784, 16).to(device), dict[str, list[torch.Tensor]](mu=[])
    for epoch in range(4):
        if epoch:
            encoder(torch.rand(16, 784, device=device)).square().mean().backward()
        batches = [encoder(torch.rand(32, 784, device=device)) for _ in range(40)]
        codes["mu"].append(torch.cat(batches))
    return len(codes["mu"])
