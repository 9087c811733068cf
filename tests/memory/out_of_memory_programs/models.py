"""Programs with a model, an optimizer or a checkpoint too many."""

import io

import torch
from torch import nn


def build(width: int, size: int = 512) -> nn.Sequential:
    return nn.Sequential(nn.Linear(size, width), nn.ReLU(), nn.Linear(width, size))


def scored(net: nn.Module, device: str) -> float:
    x = torch.randn(64, 512, device=device)
    with torch.no_grad():
        return float(net(x).square().mean())


def model_of_before(device: str) -> None:
    """A small model is trained before a large one, and is not needed after its score is known."""
    baseline = nn.Sequential(nn.Linear(512, 4096), nn.ReLU(), nn.Linear(4096, 512)).to(device)
    reference = scored(baseline, device)
    candidate = nn.Sequential(nn.Linear(512, 6144), nn.ReLU(), nn.Linear(6144, 512)).to(device)
    print(scored(candidate, device) / reference)


def saved(model: nn.Module, x: torch.Tensor) -> io.BytesIO:
    optimizer = torch.optim.Adam(model.parameters())
    model(x).sum().backward()
    optimizer.step()
    file = io.BytesIO()
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, file)
    file.seek(0)
    return file


def checkpoint_beside_the_model(device: str) -> None:
    """A run is resumed; what was read stays beside the model and the optimizer that it was copied into."""
    file = saved(nn.Linear(1024, 3072).to(device), torch.randn(2, 1024, device=device))
    state = torch.load(file, map_location=device)
    net = nn.Linear(1024, 3072).to(device)
    net.load_state_dict(state["model"])
    optimizer = torch.optim.Adam(net.parameters(), foreach=False)
    optimizer.load_state_dict(state["optimizer"])
    for _ in range(2):
        x = torch.randn(64, 1024, device=device)
        net(x).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()


class Resumed:
    def __init__(self, file: io.BytesIO, device: str) -> None:
        self.model = build(2048).to(device)
        self.optimizer = torch.optim.AdamW(self.model.parameters())
        self.checkpoint = torch.load(file, map_location=device)
        self.model.load_state_dict(self.checkpoint["model"])
        self.optimizer.load_state_dict(self.checkpoint["optimizer"])

    def step(self, x: torch.Tensor) -> None:
        self.model(x).square().mean().backward()
        self.optimizer.step()
        self.optimizer.zero_grad()


def checkpoint_of_a_trainer(device: str) -> None:
    """A trainer keeps the checkpoint that it loaded to the device."""
    trainer = Resumed(saved(build(2048), torch.randn(2, 512)), device)
    for _ in range(3):
        trainer.step(torch.randn(256, 512, device=device))


def fitted(model: nn.Module, device: str, steps: int = 2) -> torch.optim.Optimizer:
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for _ in range(steps):
        optimizer.zero_grad()
        model(torch.randn(32, 256, device=device)).pow(2).mean().backward()
        optimizer.step()
    return optimizer


def optimizer_of_the_same_name(device: str) -> float:
    """A second model is trained; the first lives on by its name, and by the optimizer until that gets its new value."""
    first = build(2048, 256).to(device)
    optimizer = fitted(first, device)
    print(sum(p.numel() for p in first.parameters()))
    second = build(4096, 256).to(device)
    optimizer = fitted(second, device)
    return float(optimizer.param_groups[0]["lr"])


def schedule_of_the_first_optimizer(device: str) -> None:
    """A warm-up's optimizer lives on in the schedule that it was given to, and in the variable of a loop."""
    net = nn.Linear(1024, 1024).to(device)
    warm = torch.optim.Adam(net.parameters(), lr=1e-2)
    rates = torch.optim.lr_scheduler.StepLR(warm, 1)
    for each in (warm, rates):
        net(torch.ones(4, 1024, device=device)).sum().backward()
        each.step()
    main = torch.optim.Adam(net.parameters(), lr=1e-4)
    for _ in range(3):
        main.zero_grad(set_to_none=False)
        net(torch.ones(4, 1024, device=device)).sum().backward()
        main.step()


def widths_in_turn(device: str) -> None:
    """Models of several widths, the widest first, are trained in turn; each is alive while the next is made."""
    for width in (4096, 3072, 2048):
        net = build(width).to(device)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9, foreach=False)
        for _ in range(2):
            optimizer.zero_grad()
            net(torch.randn(8, 512, device=device)).square().mean().backward()
            optimizer.step()


class Candidate:
    def __init__(self, rate: float, device: str) -> None:
        self.device = device
        self.model = nn.Sequential(nn.Linear(1024, 1024), nn.Linear(1024, 4096), nn.Linear(4096, 1024)).to(device)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=rate, momentum=0.9, foreach=False)

    def fit(self) -> float:
        for _ in range(2):
            self.optimizer.zero_grad()
            loss = self.model(torch.randn(8, 1024, device=self.device)).square().mean()
            loss.backward()
            self.optimizer.step()
        return float(loss.item())


def trainers_of_a_search(device: str) -> None:
    """A search over rates makes a trainer for each; the last one holds its model until the next is there."""
    rates = [0.1, 0.01, 0.001]
    best = float("inf")
    while rates:
        trainer = Candidate(rates.pop(), device)
        best = min(best, trainer.fit())


def needed_after_the_loop(device: str) -> None:
    """Several models, the last of which is used after the loop: it cannot be let go of in the loop."""
    for width in (4096, 4000, 3000):
        net = nn.Sequential(nn.Linear(512, width), nn.ReLU(), nn.Linear(width, 512)).to(device)
        net(torch.randn(8, 512, device=device)).square().mean().backward()
    print(net(torch.randn(8, 512, device=device)).mean().item() > 9)


def needed_in_the_next_round(device: str) -> None:
    """Each model is the teacher of the next."""
    net: nn.Sequential | None = None
    for width in (4096, 4000, 3000):
        teacher = net
        net = nn.Sequential(nn.Linear(512, width), nn.ReLU(), nn.Linear(width, 512)).to(device)
        x = torch.randn(8, 512, device=device)
        with torch.no_grad():
            goal = teacher(x) if teacher is not None else x
        (net(x) - goal).square().mean().backward()
