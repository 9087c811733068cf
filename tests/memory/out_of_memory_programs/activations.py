"""Programs whose backward pass needs more than there is, and two that find what fits."""

import torch
from torch import nn
from torch.nn import functional


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.ModuleList(
            nn.Sequential(nn.Linear(256, 1024), nn.GELU(), nn.Linear(1024, 256)) for _ in range(6)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.inner:
            x = x + layer(x)
        return x


def batch_of_blocks(device: str) -> None:
    """A stack of layers in a list of the model; the batch is too large for their activations."""
    net = Net().to(device)
    net(torch.randn(1200, 256, device=device)).square().mean().backward()


def one_backward_for_all(device: str) -> None:
    """Gradients are accumulated by one backward pass through the sum of all losses."""
    model = nn.Sequential(nn.Linear(64, 1024), nn.GELU(), nn.Linear(1024, 64)).to(device)
    total = torch.zeros((), device=device)
    for _ in range(16):
        x = torch.randn(512, 64, device=device)
        total = total + (model(x) - x).pow(2).mean() / 16
    total.backward()


def losses_of_an_accumulation(device: str) -> None:
    """Losses of all parts of a batch are listed, and one backward pass runs through their mean."""
    net = nn.Sequential(nn.Linear(64, 1024), nn.GELU(), nn.Linear(1024, 8)).to(device)
    losses = []
    for _ in range(24):
        x = torch.randn(512, 64, device=device)
        y = torch.randint(0, 8, (512,), device=device)
        losses.append(functional.cross_entropy(net(x), y))
    torch.stack(losses).mean().backward()


def steps_of_a_rollout(device: str) -> None:
    """All steps of a rollout are kept, as the loss is of all: the rollout is too long, and nothing leaks."""
    model = nn.Sequential(nn.Linear(256, 512), nn.Tanh(), nn.Linear(512, 256)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(3):
        state = torch.randn(512, 256, device=device)
        states = []
        for _ in range(40):
            state = model(state)
            states.append(state)
        optimizer.zero_grad()
        torch.stack(states).square().mean().backward()
        optimizer.step()


def mlp(width: int, depth: int) -> nn.Sequential:
    inner = [part for _ in range(depth) for part in (nn.Linear(width, width), nn.Tanh())]
    return nn.Sequential(nn.Linear(64, width), nn.Tanh(), *inner, nn.Linear(width, 20))


def distill(teacher: nn.Module, student: nn.Module, device: str) -> float:
    teacher.eval()
    optimizer = torch.optim.SGD(student.parameters(), lr=0.01)
    for _ in range(3):
        x = torch.randn(1024, 64, device=device)
        soft = functional.softmax(teacher(x) / 2, dim=-1)
        loss = functional.kl_div(functional.log_softmax(student(x) / 2, dim=-1), soft, reduction="batchmean")
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return float(loss)


def teacher_with_a_graph(device: str) -> float:
    """A student learns from a teacher whose graph is kept, though no optimizer trains it."""
    return distill(mlp(512, 8).to(device), mlp(256, 1).to(device), device)


class Distiller:
    def __init__(self, big: nn.Module, small: nn.Module, device: str) -> None:
        self.big, self.small, self.device = big.to(device).eval(), small.to(device), device
        self.adam = torch.optim.Adam(self.small.parameters(), lr=1e-3)

    def step(self, x: torch.Tensor) -> float:
        loss = functional.mse_loss(self.small(x), self.big(x))
        self.adam.zero_grad()
        loss.backward()
        self.adam.step()
        return loss.item()


def teacher_of_a_class(device: str) -> list[float]:
    """A class distils a large model, which no optimizer trains, into a small one."""
    distiller = Distiller(mlp(512, 10), mlp(64, 1), device)
    return [distiller.step(torch.randn(768, 64, device=device)) for _ in range(3)]


def features_of_a_generator(device: str) -> None:
    """A loss by the features of a fixed model: the gradient of the generator runs through it."""
    features = nn.Sequential(nn.Linear(64, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU()).to(device)
    generator = nn.Linear(16, 64).to(device)
    adam = torch.optim.Adam(generator.parameters())
    for _ in range(2):
        fake = generator(torch.randn(2048, 16, device=device))
        adam.zero_grad()
        features(fake).pow(2).mean().backward()
        adam.step()


def fits_after_halving(device: str) -> None:
    """Healthy: the program looks for a batch that fits, and goes on with it."""
    net = nn.Sequential(nn.Linear(256, 2048), nn.ReLU(), nn.Linear(2048, 256)).to(device)
    batch = 8192
    while True:
        try:
            net(torch.randn(batch, 256, device=device)).square().mean().backward()
            break
        except torch.OutOfMemoryError:
            net.zero_grad()
            batch //= 2


def fits_with_lists(device: str) -> None:
    """Healthy: losses and predictions are kept, without their graphs or after their backward pass."""
    net = nn.Sequential(nn.Linear(64, 512), nn.Tanh(), nn.Linear(512, 64)).to(device)
    optimizer = torch.optim.Adam(net.parameters())
    losses, shown = [], []
    for _ in range(20):
        batch = torch.randn(512, 64, device=device)
        out = net(batch)
        loss = (out - batch).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss)
        shown.append(out.detach().mean(0))
    print(len(losses), len(shown))
