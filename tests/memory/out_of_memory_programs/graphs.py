"""Programs in which something keeps the graphs of what was computed."""

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn


@dataclass
class History:
    terms: list[torch.Tensor] = field(default_factory=list)

    def remember(self, term: torch.Tensor) -> None:
        self.terms.append(term)


def kept_graphs_of_terms(device: str) -> None:
    """Losses are differentiated twice and kept with their graphs in an object."""
    net = nn.Sequential(nn.Linear(64, 512), nn.Tanh(), nn.Linear(512, 64)).to(device)
    history = History()
    for _ in range(40):
        batch = torch.randn(1024, 64, device=device)
        loss = (net(batch) - batch).square().mean()
        loss.backward(retain_graph=True)
        history.remember(loss)


def predictions(model: nn.Module, batches: list[torch.Tensor], device: str) -> torch.Tensor:
    model.eval()
    found = []
    for batch in batches:
        found.append(model(batch.to(device)))
    return torch.cat(found)


def predictions_of_an_evaluation(device: str) -> None:
    """Predictions are collected for a metric; the model is in evaluation, but gradients are on."""
    model = nn.Sequential(nn.Linear(64, 1024), nn.GELU(), nn.Linear(1024, 4)).to(device)
    batches = [torch.randn(512, 64) for _ in range(40)]
    print(predictions(model, batches, device).shape)


def evaluate(model: nn.Module, loader: list[tuple[torch.Tensor, torch.Tensor]], device: str) -> Any:
    model.eval()
    logits: Any = []
    labels = []
    for inputs, targets in loader:
        logits += [model(inputs.to(device))]
        labels += [targets]
    logits = torch.cat(logits)
    return (logits.argmax(-1).cpu() == torch.cat(labels)).float().mean()


def evaluation_that_is_joined(device: str) -> None:
    """Logits are added to a list, which is joined under its own name; gradients are on."""
    loader = [(torch.randn(128, 64), torch.randint(0, 5, (128,))) for _ in range(60)]
    model = nn.Sequential(nn.Linear(64, 2048), nn.Tanh(), nn.Linear(2048, 5)).to(device)
    print(evaluate(model, loader, device))


def outputs_that_are_joined(device: str) -> float:
    """Outputs of a comprehension are joined under the same name; gradients are on."""
    model = nn.Sequential(nn.Linear(64, 2048), nn.Tanh(), nn.Linear(2048, 1024)).to(device)
    batches = [torch.randn(64, 64) for _ in range(56)]
    outs: Any = [model(batch.to(device)) for batch in batches]
    outs = torch.cat(outs)
    return float(outs.mean())


def features_of_a_comprehension(device: str) -> None:
    """A list is made in one expression: it has no name until it is done."""
    encoder = nn.Sequential(nn.Linear(64, 1024), nn.ReLU(), nn.Linear(1024, 32)).to(device)
    loader = [torch.randn(512, 64) for _ in range(24)]
    features = torch.cat([encoder(batch.to(device)) for batch in loader])
    print(features.shape)


def pairs(model: nn.Module, device: str) -> Iterator[tuple[int, torch.Tensor]]:
    for number in range(40):
        yield number, model(torch.randn(256, 64, device=device))


def drained_generator(device: str) -> None:
    """A generator is drained into a dictionary."""
    model = nn.Sequential(nn.Linear(64, 1024), nn.ReLU(), nn.Linear(1024, 64)).to(device)
    table = dict(pairs(model, device))
    print(len(table))


def embeddings(model: nn.Module, texts: list[torch.Tensor], device: str) -> Iterator[torch.Tensor]:
    for text in texts:
        yield model(text.to(device))


def vectors_of_a_generator(device: str) -> int:
    """A dictionary keeps what a generator yields, with its graphs."""
    model = nn.Sequential(nn.Linear(128, 1024), nn.ReLU(), nn.Linear(1024, 512)).to(device).eval()
    texts = [torch.randn(128, 128) for _ in range(80)]
    index = {}
    for number, vector in enumerate(embeddings(model, texts, device)):
        index[number] = vector
    return len(index)


def state_from_chunk_to_chunk(device: str) -> None:
    """A long signal is filtered in chunks; the state that goes from one to the next carries the graph of all."""
    cell = nn.GRUCell(32, 512).to(device)
    state = torch.zeros(256, 512, device=device)
    loudest = 0.0
    for _ in range(200):
        state = cell(torch.randn(256, 32, device=device), state)
        loudest = max(loudest, state.abs().max().item())
    print(loudest)


def state_of_an_lstm(device: str) -> None:
    """Hidden and cell state are a tuple, and the whole stream is scored without a backward pass."""
    lstm = nn.LSTM(32, 256, batch_first=True).to(device)
    memory = None
    scores = []
    for _ in range(100):
        out, memory = lstm(torch.randn(64, 16, 32, device=device), memory)
        scores.append(out.mean().item())
    print(scores[-1])


class Reader(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.rnn = nn.LSTM(64, 128, batch_first=True)
        self.out = nn.Linear(128, 8)

    def forward(self, x: torch.Tensor, state: Any) -> tuple[torch.Tensor, Any]:
        hidden, state = self.rnn(x, state)
        return self.out(hidden), state


def state_with_kept_graphs(device: str) -> None:
    """A state goes from chunk to chunk, and `retain_graph=True` hides the error that says so."""
    reader = Reader().to(device)
    state = None
    for _ in range(20):
        scores, state = reader(torch.randn(64, 16, 64, device=device), state)
        scores.pow(2).mean().backward(retain_graph=True)


def tracker() -> tuple[Callable[[torch.Tensor], None], Callable[[], torch.Tensor]]:
    values: list[torch.Tensor] = []

    def track(value: torch.Tensor) -> None:
        values.append(value)

    def mean() -> torch.Tensor:
        return torch.stack(values).mean()

    return track, mean


def values_of_a_closure(device: str) -> None:
    """Two functions share a list; no variable of the program has it."""
    net = nn.Sequential(nn.Linear(64, 2048), nn.Tanh(), nn.Linear(2048, 64)).to(device)
    track, mean = tracker()
    for _ in range(30):
        x = torch.randn(256, 64, device=device)
        track((net(x) - x).pow(2).mean())
    print(float(mean()))


def window_of_records(device: str) -> None:
    """A window of records, one of whose parts keeps a graph."""
    body = nn.Sequential(nn.Linear(64, 2048), nn.ReLU(), nn.Linear(2048, 64)).to(device)
    window: deque[dict[str, object]] = deque(maxlen=100)
    for step in range(30):
        x = torch.randn(256, 64, device=device)
        drift = (body(x) - x).abs().mean()
        window.append({"step": step, "drift": drift, "size": float(drift)})
