"""Programs whose loops keep what has a bound or is wanted."""

import collections
import copy

import torch
from torch import nn
from torch.func import functional_call

CACHE: dict[int, torch.Tensor] = {}


def positions(length: int, device: str) -> torch.Tensor:
    if length not in CACHE:
        CACHE[length] = torch.arange(length * 1024, device=device).float().sin()
    return CACHE[length]


def healthy_cache(device: str) -> None:
    """Positions are computed once for each length; batches are made ahead, and the model grows before it is trained."""
    batches = [torch.randn(256, 256, device=device) for _ in range(30)]
    layers = []
    for _ in range(6):
        layers.append(nn.Linear(256, 256).to(device))
    model = nn.Sequential(*layers)
    optimizer = torch.optim.Adam(model.parameters())
    for at, batch in enumerate(batches):
        scale = positions(1 + at % 16, device).mean()
        optimizer.zero_grad()
        (model(batch) * scale).square().mean().backward()
        optimizer.step()


def healthy_ensemble(device: str) -> None:
    """Snapshots of a cyclic schedule predict together: all of them are used after training."""
    model = nn.Sequential(nn.Linear(256, 1024), nn.GELU(), nn.Linear(1024, 16)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    members = []
    for _ in range(8):
        for _ in range(3):
            optimizer.zero_grad()
            model(torch.randn(32, 256, device=device)).square().mean().backward()
            optimizer.step()
        members.append(copy.deepcopy(model.state_dict()))
    x = torch.randn(8, 256, device=device)
    with torch.no_grad():
        print(torch.stack([functional_call(model, member, (x,)) for member in members]).mean() > 9)


def healthy_fisher(device: str) -> None:
    """Gradients of a few tasks are kept for their mean, parameters of before for a penalty that each step computes."""
    net = nn.Sequential(nn.Linear(512, 512), nn.Tanh(), nn.Linear(512, 512)).to(device)
    anchors: list[list[torch.Tensor]] = []
    fisher: list[list[torch.Tensor]] = []
    for _ in range(6):
        optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
        for _ in range(3):
            optimizer.zero_grad()
            loss = net(torch.randn(16, 512, device=device)).square().mean()
            for anchor in anchors:
                loss = loss + sum(((p - old) ** 2).sum() for p, old in zip(net.parameters(), anchor, strict=True))
            loss.backward()
            optimizer.step()
        anchors.append([p.detach().clone() for p in net.parameters()])
        fisher.append([p.grad.detach() ** 2 for p in net.parameters() if p.grad is not None])
    mean = [torch.stack(each).mean(0) for each in zip(*fisher, strict=True)]
    print(len(mean))


def healthy_last_states(device: str) -> None:
    """Three last states are kept for their average, and the best of them; a pool is filled before training."""
    pool = [torch.randn(256, 256, device=device) for _ in range(8)]
    model = nn.Sequential(nn.Linear(256, 1024), nn.GELU(), nn.Linear(1024, 256)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    last: list[dict[str, torch.Tensor]] = []
    best, lowest = {}, float("inf")
    for epoch in range(16):
        optimizer.zero_grad()
        loss = model(pool[epoch % 8]).square().mean()
        loss.backward()
        optimizer.step()
        last.append(copy.deepcopy(model.state_dict()))
        last = last[-3:]
        if loss.item() < lowest:
            lowest, best = loss.item(), copy.deepcopy(model.state_dict())
    model.load_state_dict({key: sum(each[key] for each in last) / len(last) for key in best})


def healthy_members(device: str) -> None:
    """Copies of a model predict together after training, and gradients of the tasks of a step are combined in it."""
    model = nn.Sequential(nn.Linear(256, 1024), nn.GELU(), nn.Linear(1024, 256)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    members = []
    for _ in range(6):
        grads = []
        for _ in range(5):
            optimizer.zero_grad()
            model(torch.randn(16, 256, device=device)).square().mean().backward()
            grads.append([p.grad.clone() for p in model.parameters() if p.grad is not None])
        for p, *each in zip(model.parameters(), *grads, strict=True):
            p.grad = torch.stack(each).median(0).values
        optimizer.step()
        members.append(copy.deepcopy(model))
    x = torch.randn(8, 256, device=device)
    with torch.no_grad():
        torch.stack([member(x) for member in members]).mean(0)


@torch.no_grad()
def healthy_predictions(device: str) -> None:
    """Predictions of an evaluation are few numbers each, and are joined at its end."""
    model = nn.Sequential(nn.Linear(64, 2048), nn.Tanh(), nn.Linear(2048, 10)).to(device).eval()
    found = []
    for _ in range(40):
        found.append(model(torch.randn(512, 64, device=device)).argmax(-1))
    torch.cat(found)


def healthy_replay(device: str) -> None:
    """A buffer of transitions has a bound, and metrics are numbers."""
    policy = nn.Sequential(nn.Linear(256, 512), nn.Tanh(), nn.Linear(512, 256)).to(device)
    optimizer = torch.optim.SGD(policy.parameters(), lr=0.01)
    memory: collections.deque[tuple[torch.Tensor, torch.Tensor]] = collections.deque(maxlen=64)
    losses = []
    state = torch.randn(64, 256, device=device)
    for _ in range(60):
        with torch.no_grad():
            after = policy(state)
        memory.append((state, after))
        before, target = memory[len(memory) // 2]
        loss = (policy(before) - target).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        state = after


class Agent:
    def __init__(self, device: str) -> None:
        self.policy = nn.Sequential(nn.Linear(64, 512), nn.Tanh(), nn.Linear(512, 8)).to(device)
        self.optimizer = torch.optim.SGD(self.policy.parameters(), lr=0.01)
        self.kept: list[torch.Tensor] = []

    def act(self, state: torch.Tensor) -> None:
        self.kept.append(self.policy(state).log_softmax(-1)[:, 0])


def update(agent: Agent) -> None:
    rewards = torch.cat(agent.kept)
    agent.optimizer.zero_grad()
    (-rewards).mean().backward()
    agent.optimizer.step()
    agent.kept = []


def healthy_rollout(device: str) -> None:
    """Log-probabilities of a rollout keep their graphs until its update, which another function makes."""
    agent = Agent(device)
    for _ in range(2):
        for _ in range(20):
            agent.act(torch.randn(256, 64, device=device))
        update(agent)


def healthy_states_on_host(device: str) -> None:
    """Each epoch's state goes to the host; each task gets a head of its own, which are kept with a model of each."""
    body = nn.Linear(256, 512).to(device)
    heads = []
    history = []
    for _ in range(12):
        head = nn.Linear(512, 2048).to(device)
        optimizer = torch.optim.SGD([*body.parameters(), *head.parameters()], lr=0.01)
        head(body(torch.randn(32, 256, device=device))).square().mean().backward()
        optimizer.step()
        heads.append(head)
        history.append({key: value.cpu() for key, value in body.state_dict().items()})


def healthy_two_passes(device: str) -> None:
    """A critic runs backward in each step and keeps the graph that the policy's losses need after the episode."""
    body = nn.Sequential(nn.Linear(64, 512), nn.Tanh(), nn.Linear(512, 64)).to(device)
    critic, policy = nn.Linear(64, 1).to(device), nn.Linear(64, 8).to(device)
    optimizer = torch.optim.SGD(nn.ModuleList([body, critic, policy]).parameters(), lr=0.01)
    for _ in range(2):
        chosen = []
        for _ in range(20):
            state = torch.randn(128, 64, device=device)
            features = body(state)
            critic(features).square().mean().backward(retain_graph=True)
            chosen.append(policy(features).log_softmax(-1)[:, 0].mean())
        torch.stack(chosen).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
