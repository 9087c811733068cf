from collections import deque
import copy
import random

from torch import nn
import torch
from torch.optim.lr_scheduler import ReduceLROnPlateau


def descend(optimizer, loss):
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


# Folds of a data set are moved once each; a fold's score is read when it is done.
def folds(device):
    data, scores = torch.rand(40, 5), []
    for fold in range(6):
        left_out = torch.arange(40) % 6 == fold
        train, test = data[~left_out].to(device), data[left_out].to(device)
        net = nn.Linear(4, 1).to(device)
        opt = torch.optim.Adam(net.parameters(), lr=0.05)
        for _ in range(9):
            descend(opt, (net(train[:, :4]) - train[:, 4:]).square().mean())
        with torch.no_grad():
            scores.append((net(test[:, :4]) - test[:, 4:]).abs().mean().item())
    return scores


# A scaler asks what overflows; the loss is written every ten batches.
def half_scaled(device):
    net = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 1)).to(device)
    opt = torch.optim.SGD(net.parameters(), lr=0.05)
    scaler, lines = torch.amp.GradScaler(device.partition(":")[0]), []
    for step, x in enumerate(torch.rand(30, 12, 8, device=device)):
        with torch.autocast(device.partition(":")[0], torch.float16):
            loss = (net(x) - x.sum(1, keepdim=True)).square().mean()
        opt.zero_grad(set_to_none=True)
        scaler.scale(loss).backward()
        scaler.unscale_(opt)
        nn.utils.clip_grad_norm_(net.parameters(), 5.0)
        scaler.step(opt)
        scaler.update()
        if step % 10 == 9:
            lines.append(f"{step} {loss.item():.3f}")
    return net[0].bias.tolist(), len(lines)


# Gradients are clipped by torch, their norms kept as tensors and read once an epoch.
def clipped(device):
    net = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 2)).to(device)
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, 1e-2, total_steps=36)
    summary = []
    for _ in range(3):
        norms, losses = [], []
        for x, y in zip(torch.rand(12, 16, 8, device=device), torch.randint(0, 2, (12, 16), device=device)):
            loss = nn.functional.cross_entropy(net(x), y, label_smoothing=0.1)
            loss.backward()
            norms.append(nn.utils.clip_grad_norm_(net.parameters(), 1.0))
            optimizer.step()
            scheduler.step()
            optimizer.zero_grad()
            losses.append(loss.detach())
        largest, mean = torch.stack([torch.stack(norms).max(), torch.stack(losses).mean()]).tolist()
        summary.append((largest, mean))
    return summary


# An agent of continuous actions: the state goes to the device, the action comes back, as the environment needs.
class Pole:
    def __init__(self, seed):
        self.draw = torch.Generator().manual_seed(seed)
        self.angle, self.speed = 0.1, 0.0

    def seen(self):
        return [self.angle, self.speed]

    def push(self, force):
        self.speed += 0.1 * self.angle + 0.05 * force
        self.angle += 0.1 * self.speed
        return -abs(self.angle)


class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.q = nn.Sequential(nn.Linear(3, 16), nn.ReLU(), nn.Linear(16, 1))

    def forward(self, state, action):
        return self.q(torch.cat([state, action], 1))


def continuous(device):
    actor = nn.Sequential(nn.Linear(2, 16), nn.ReLU(), nn.Linear(16, 1), nn.Tanh()).to(device)
    critic = Critic().to(device)
    of_actor, of_critic = torch.optim.Adam(actor.parameters()), torch.optim.Adam(critic.parameters())
    pole, history = Pole(0), []
    for step in range(40):
        state = pole.seen()
        with torch.no_grad():
            force = actor(torch.tensor([state], device=device)).item()
        reward = pole.push(force)
        history.append((state, [force], [reward]))
        if len(history) >= 8:
            s, a, r = (torch.tensor(each).to(device) for each in zip(*history[-8:]))
            of_critic.zero_grad()
            ((critic(s, a) - r).square().mean()).backward()
            of_critic.step()
            of_actor.zero_grad()
            (-critic(s, actor(s)).mean()).backward()
            of_actor.step()
    return [reward[0] for _, _, reward in history]


# What each batch needs is a buffer, and a bound is kept as a tensor.
class Coded(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(8, 8)
        self.register_buffer("code", torch.cos(torch.arange(8.0)), persistent=False)

    def forward(self, x):
        out = self.lin(x + self.code[: x.shape[1]])
        most = out.detach().abs().amax()
        return torch.minimum(out, most / 2) / most


def table_on_device(device):
    net = Coded().to(device)
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    total = torch.zeros((), device=device)
    for x in torch.rand(25, 6, 8, device=device):
        loss = net(x).square().mean()
        descend(opt, loss)
        total += loss.detach()
    return total.item()


# A GAN with a fixed noise for its pictures, labels on the device, and a log line every tenth step.
def adversaries(device):
    generator = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 12), nn.Tanh()).to(device)
    critic = nn.Sequential(nn.Linear(12, 16), nn.LeakyReLU(0.2), nn.Linear(16, 1)).to(device)
    optimizers = [torch.optim.Adam(net.parameters(), lr=2e-4, betas=(0.5, 0.999)) for net in (critic, generator)]
    criterion = nn.BCEWithLogitsLoss()
    fixed = torch.randn(4, 8, device=device)
    pictures = []
    for step, real in enumerate(torch.rand(30, 16, 12)):
        real = real.to(device, non_blocking=True)
        yes, no = torch.ones(16, 1, device=device), torch.zeros(16, 1, device=device)
        fake = generator(torch.randn(16, 8, device=device))
        optimizers[0].zero_grad(set_to_none=True)
        d_loss = criterion(critic(real), yes) + criterion(critic(fake.detach()), no)
        d_loss.backward()
        optimizers[0].step()
        optimizers[1].zero_grad(set_to_none=True)
        g_loss = criterion(critic(fake), yes)
        g_loss.backward()
        optimizers[1].step()
        if step % 10 == 9:
            f"[{step}] loss of the critic {d_loss.item():.3f}, of the generator {g_loss.item():.3f}"
            with torch.no_grad():
                pictures.append(generator(fixed).cpu())
    return len(pictures)


# A mean of what is known, by weights, and a step that is skipped without asking.
def masked(device):
    net = nn.Linear(8, 8).to(device)
    opt = torch.optim.AdamW(net.parameters(), lr=0.01)
    kept = torch.zeros(20, device=device)
    for step, x in enumerate(torch.rand(20, 16, 8, device=device)):
        known = (x > 0.2).float()
        loss = ((net(x * known) - x).square() * known).sum() / known.sum().clamp(min=1)
        opt.zero_grad()
        loss.backward()
        norm = nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        opt.step()
        kept[step] = norm.detach()
    return kept.tolist()


# A curve is fitted by LBFGS, which reads its own loss.
def closures(device):
    x = torch.linspace(-1, 1, 40, device=device)[:, None]
    y = torch.sin(3 * x)
    net = nn.Sequential(nn.Linear(1, 10), nn.Tanh(), nn.Linear(10, 1)).to(device)
    opt = torch.optim.LBFGS(net.parameters(), max_iter=4, line_search_fn="strong_wolfe")

    def closure():
        opt.zero_grad()
        loss = nn.functional.mse_loss(net(x), y)
        loss.backward()
        return loss

    for _ in range(10):
        opt.step(closure)
    return net(x).tolist()


# A tracker gets a number every tenth step and the weights' histograms once an epoch.
class Tracker:
    def __init__(self):
        self.rows = []

    def log(self, **values):
        self.rows.append(values)


def tracked(device):
    net = nn.Sequential(nn.Linear(8, 8), nn.GELU(), nn.Linear(8, 1)).to(device)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    tracker, step, running = Tracker(), 0, torch.zeros((), device=device)
    for epoch in range(3):
        for x in torch.rand(20, 16, 8).split(1):
            loss = net(x[0].to(device)).square().mean()
            descend(optimizer, loss)
            running += loss.detach()
            step += 1
            if step % 10 == 0:
                tracker.log(step=step, loss=(running / 10).item(), rate=optimizer.param_groups[0]["lr"])
                running.zero_()
        histograms = {name: weight.detach().cpu().histc(8).tolist() for name, weight in net.named_parameters()}
        tracker.log(epoch=epoch, **histograms)
    return len(tracker.rows)


# A schedule that reads one loss in an epoch.
def validated(net, batches):
    net.eval()
    with torch.no_grad():
        return sum((net(b) - b).square().mean() for b in batches) / len(batches)


def plateau_by_epoch(device):
    net = nn.Linear(6, 6).to(device)
    opt = torch.optim.SGD(net.parameters(), lr=0.5)
    slower, rates = ReduceLROnPlateau(opt, patience=1, factor=0.1), []
    train, test = torch.rand(5, 8, 6, device=device), torch.rand(2, 8, 6, device=device)
    for _ in range(12):
        net.train()
        for b in train:
            descend(opt, (net(b) - b).square().mean())
        slower.step(validated(net, test))
        rates.append(opt.param_groups[0]["lr"])
    return rates


# Q-learning: the environment is Python's, its experience goes to the device as one batch, and a copy follows slowly.
class Corridor:
    def __init__(self):
        self.at = 0

    def step(self, action):
        self.at = max(0, min(9, self.at + (1 if action else -1)))
        return [self.at / 9, 1.0], float(self.at == 9)


def replayed(device):
    random.seed(0)
    q = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 2)).to(device)
    slow = copy.deepcopy(q).requires_grad_(False)
    optimizer = torch.optim.Adam(q.parameters())
    memory, world, state = deque(maxlen=100), Corridor(), [0.0, 1.0]
    for step in range(24):
        if random.random() < 0.5:
            action = random.randrange(2)
        else:
            with torch.no_grad():
                action = q(torch.tensor([state], device=device)).argmax(1).item()
        after, reward = world.step(action)
        memory.append((state, action, reward, after))
        state = after
        if len(memory) < 8:
            continue
        states, actions, rewards, afters = (torch.tensor(part) for part in zip(*random.sample(memory, 8)))
        states, actions, rewards, afters = (part.to(device) for part in (states, actions, rewards, afters))
        target = rewards + 0.9 * slow(afters).amax(1)
        loss = nn.functional.smooth_l1_loss(q(states).gather(1, actions[:, None])[:, 0], target)
        descend(optimizer, loss)
        with torch.no_grad():
            torch._foreach_lerp_(list(slow.parameters()), list(q.parameters()), 0.01)
    return len(memory)
