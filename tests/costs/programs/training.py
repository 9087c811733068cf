import random

from torch import nn
import torch
from torch.nn import functional as F


def descend(optimizer, loss):
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


# Samples of a mixture: the component is drawn on the device and looked up in a list of tensors.
def mixtures(device):
    net = nn.Linear(2, 2).to(device)
    opt = torch.optim.Adam(net.parameters(), lr=0.01)
    heights = torch.rand(50, 50)
    spread, seen = torch.tensor([0.1, 0.5, 1.0], device=device), []
    for x in torch.randn(19, 30, 2, device=device):
        out = net(x)
        energy = (out**2).sum(1) * spread[1] + heights.to(device).mean()  # 2
        loss = energy.mean()
        descend(opt, loss)
        seen = seen + [energy.std().item()]  # 1
        #1> seen = seen + [energy.std().detach()]
    #1> seen = torch.stack(seen).tolist()
    return seen


# A classifier that asks for the labels of what it doubts, and keeps a table of losses.
def active_learning(device):
    net = nn.Linear(5, 3).to(device)
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    pool = torch.randn(40, 12, 5).to(device)
    asked, log = [], {}
    for step, batch in enumerate(pool):
        out = net(batch)
        doubt = torch.distributions.Categorical(logits=out.detach()).entropy()
        #1> doubts = doubt.tolist()
        for at in range(len(doubt)):
            if doubt[at].item() > 1.0:  # 1
            #1> if doubts[at] > 1.0:
                asked.append((step, at))
        loss = out.logsumexp(1).mean()
        descend(opt, loss)
        log[step] = float(loss)  # 2
        #2> log[step] = loss.detach()
    #2> log = dict(zip(log, torch.stack([*log.values()]).tolist()))
    return asked, list(log.values())


# Rows of a batch of graphs are added up by graph: how many there are is read of the device.
class Pool(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(6, 6)
        self.scale = torch.tensor(0.3)

    def forward(self, x, owner):
        h = self.lin(x).relu() * self.scale.to(x.device)  # 2
        graphs = int(owner.max()) + 1  # 1
        #1> graphs = 4
        return torch.zeros(graphs, 6, device=x.device).index_add(0, owner, h)


def graph_pooling(device):
    pool, head = Pool().to(device), nn.Linear(6, 2).to(device)
    opt = torch.optim.SGD([*pool.parameters(), *head.parameters()], lr=0.1)
    owner = torch.tensor([0, 0, 1, 1, 1, 2, 2, 3], device=device)
    for _ in range(20):
        x = torch.randn(8, 6, device=device)
        loss = head(pool(x, owner)).square().mean()
        descend(opt, loss)
    return head.weight.tolist()


# A logger gets every weight and the loss in each step.
class Board:
    def __init__(self):
        self.scalars, self.histograms = [], []

    def add_scalar(self, tag, value, step):
        self.scalars.append((tag, value, step))

    def add_histogram(self, tag, values, step):
        self.histograms.append((tag, values, step))


def board(device):
    net = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 1)).to(device)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    board, losses, kept = Board(), [], []
    for step, x in enumerate(torch.rand(14, 16, 8, device=device)):
        loss = net(x).square().mean()
        descend(optimizer, loss)
        board.add_scalar("loss", loss.item(), step)  # 2
        #2> losses.append(loss.detach())
        for name, weight in net.named_parameters():
            board.add_histogram(name, weight.detach().cpu().clone(), step)  # 1
            #1> kept.append((name, weight.detach().clone(), step))
    for step, value in enumerate(torch.stack(losses).tolist() if losses else []):
        board.add_scalar("loss", value, step)
    for name, weight, step in kept:
        board.add_histogram(name, weight.cpu(), step)
    return board.scalars, [(name, values.tolist(), step) for name, values, step in board.histograms]


# A teacher that follows its student by how far it is away, with noise that is made on the CPU.
def slow_teacher(device):
    student, teacher = nn.Linear(8, 8).to(device), nn.Linear(8, 8).to(device)
    opt = torch.optim.SGD(student.parameters(), lr=0.1)
    for _ in range(16):
        x = torch.randn(8, 8, device=device)
        offset = torch.zeros(8, 8)  # -2
        #2> offset = torch.zeros(8, 8, device=device)
        offset[:2] = 1
        loss = F.mse_loss(student(x + offset.to(device)), teacher(x).detach())  # 2
        #2> loss = F.mse_loss(student(x + offset), teacher(x).detach())
        descend(opt, loss)
        with torch.no_grad():
            for t, s in zip(teacher.parameters(), student.parameters()):
                gap = (t - s).norm().item()  # 1
                #1> gap = (t - s).norm()
                t.add_(s - t, alpha=gap / (1 + gap))  # -1
                #1> t.add_((s - t) * (gap / (1 + gap)))
    return teacher.weight.tolist()


# Pairs of a list are compared one after the other to see how well it is ranked.
def ranked(device):
    net = nn.Linear(9, 1).to(device)
    opt = torch.optim.Adagrad(net.parameters(), lr=0.1)
    right = 0
    for step, docs in enumerate(torch.randn(15, 8, 9, device=device)):
        scores = net(docs).squeeze(1)
        loss = nn.functional.softplus(-(scores[:-1] - scores[1:])).mean()
        descend(opt, loss)
        plain = scores.detach()
        #1> plain = plain.tolist()
        for at in range(1, len(docs)):
            if plain[at - 1] > plain[at]:  # 1
            #1> if plain[at - 1] > plain[at]:
                right += 1
        if loss.item() < 0:  # 2
        #2> if step % 100 == 0 and loss.item() < 0:
            raise ArithmeticError
    return right, net.weight.tolist()


# Two views of each image are drawn together: the pairs' mask is made anew on the CPU, and the temperature is read.
class Temperature(nn.Module):
    def __init__(self):
        super().__init__()
        self.log = nn.Parameter(torch.tensor(0.5))

    def forward(self, alike):
        return alike / self.log.exp().item()  # 1
        #1> return alike / self.log.exp().detach()


def contrastive(device):
    encoder, scale = nn.Linear(12, 6).to(device), Temperature().to(device)
    opt = torch.optim.Adam(encoder.parameters(), lr=0.01)
    for views in torch.randn(25, 32, 12, device=device):
        z = F.normalize(encoder(views), dim=1)
        alike = scale(z @ z.T)
        mask = ~torch.eye(32, dtype=torch.bool).to(device)  # 2
        loss = (alike * mask).exp().sum(1).log().mean()
        descend(opt, loss)
    return encoder.weight.tolist()


# Q-learning: each reward goes to the device on its own, and each priority of a batch comes back singly.
class Corridor:
    def __init__(self):
        self.at = 0

    def step(self, action):
        self.at = max(0, min(9, self.at + (1 if action else -1)))
        return [self.at / 9, 1.0], float(self.at == 9)


def dqn_values(device):
    random.seed(0)
    q = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 2)).to(device)
    optimizer = torch.optim.SGD(q.parameters(), lr=0.05)
    world, state = Corridor(), torch.zeros(1, 2, device=device)
    memory, priorities = [], {}
    for step in range(20):
        action = q(state).argmax(1).item() if random.random() > 0.3 else random.randrange(2)
        observed, reward = world.step(action)
        after = torch.tensor([observed], device=device)
        reward = torch.tensor([reward], device=device)  # 2
        #2> reward = torch.full((1,), reward, device=device)
        memory.append((state, action, reward, after))
        state = after
        picked = [len(memory) - 1 - k for k in range(min(4, len(memory)))]
        states, actions, rewards, afters = zip(*(memory[k] for k in picked))
        target = torch.cat(rewards) + 0.9 * q(torch.cat(afters)).max(1).values.detach()
        values = q(torch.cat(states))[range(len(picked)), list(actions)]
        errors = (target - values).abs()
        loss = F.smooth_l1_loss(values, target)
        descend(optimizer, loss)
        #1> errors = errors.tolist()
        for k, error in zip(picked, errors):
            priorities[k] = error.item() + 0.01  # 1
            #1> priorities[k] = error + 0.01
    return priorities, q[0].weight.tolist()


# A critic of quantiles, whose fractions are made on the CPU for each batch, and whose error is shown each time.
def fractions(count, device=None):
    edges = torch.linspace(0, 1, count + 1, device=device)
    return (edges[1:] + edges[:-1]) / 2


def quantiles(device):
    critic = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 40)).to(device)
    opt = torch.optim.RMSprop(critic.parameters())
    for step in range(16):
        state, reward = torch.randn(24, 4, device=device), torch.rand(24, 1, device=device)
        tau = fractions(40).to(device)  # 2
        #2> tau = fractions(40, device)
        delta = reward - critic(state)
        loss = torch.where(delta < 0, 1 - tau, tau).mul(delta.abs()).mean()
        descend(opt, loss)
        worst = f"{step}: {delta.abs().max():.4f} {loss:.4f}"  # 1
        #1> worst = f"{step}: {delta.abs().max():.4f} {loss:.4f}" if step % 100 == 0 else ""
        assert worst is not None
    return critic[0].bias.tolist()


# Pixels of which some have no label: the loss takes the others, and hits are counted.
def segmentation(device):
    net = nn.Linear(4, 3).to(device)
    opt = torch.optim.AdamW(net.parameters())
    hits, total = 0, 0
    for _ in range(20):
        pixels, truth = torch.randn(64, 4).to(device), torch.randint(0, 4, (64,)).to(device)
        valid = truth != 3
        out = net(pixels)
        loss = F.cross_entropy(out[valid], truth[valid])  # 1
        #1> loss = F.cross_entropy(out, torch.where(valid, truth, -100))
        descend(opt, loss)
        guess = out.detach().argmax(1)
        hits += (guess == truth).sum().item()  # 2
        total += 64
    return hits / total, net.weight.tolist()


# A GAN whose labels are made on the CPU for each batch, and whose log line reads four numbers.
def gan_labels(device):
    generator = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 12)).to(device)
    critic = nn.Sequential(nn.Linear(12, 16), nn.LeakyReLU(0.2), nn.Linear(16, 1), nn.Sigmoid()).to(device)
    g_optimizer = torch.optim.Adam(generator.parameters(), lr=2e-4)
    d_optimizer = torch.optim.Adam(critic.parameters(), lr=2e-4)
    criterion = nn.BCELoss()
    images, noise = torch.rand(14, 16, 12, device=device), torch.rand(14, 16, 8, device=device)
    log = []
    for i, (real, z) in enumerate(zip(images, noise)):
        real_labels = torch.ones(16, 1).to(device)  # 2
        real_score = critic(real)
        fake = generator(z)
        fake_score = critic(fake.detach())
        d_loss = criterion(real_score, real_labels) + criterion(fake_score, 1 - real_labels)
        d_optimizer.zero_grad()
        d_loss.backward()
        d_optimizer.step()
        g_loss = criterion(critic(fake), real_labels)
        g_optimizer.zero_grad()
        g_loss.backward()
        g_optimizer.step()
        log.append((i, d_loss.item(), g_loss.item(), real_score.mean().item(), fake_score.mean().item()))  # 1
        #1> log.append((i, d_loss.detach(), g_loss.detach(), real_score.mean().detach(), fake_score.mean().detach()))
    #1> numbers = torch.stack([torch.stack(values) for _, *values in log]).tolist()
    #1> log = [(i, *values) for (i, *_), values in zip(log, numbers)]
    return log


# Sets of points of any size: what is padding is left out of the mean, and the points are drawn after each step.
class Sets(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner, self.outer = nn.Linear(3, 16), nn.Linear(16, 3)

    def forward(self, points):
        return points + self.outer(torch.relu(self.inner(points)))


def point_sets(device):
    sets, clouds = Sets().to(device), []
    opt = torch.optim.Adam(sets.parameters())
    for points in torch.rand(20, 6, 9, 3, device=device):
        real = points[..., :1].expand(-1, -1, 3) > 0.3
        moved = sets(points)
        distance = (moved - points.roll(1, 1)).abs()
        loss = distance[real].mean()  # 2
        #2> loss = torch.where(real, distance, 0).sum() / real.sum()
        descend(opt, loss)
        clouds.append(moved.detach().cpu())  # 1
        #1> clouds.append(moved.detach())
    #1> clouds = torch.stack(clouds).cpu()
    return [cloud.tolist() for cloud in clouds]


# Ranks of what each user took, found row by row, under two priors that stay on the CPU.
def recommender(device):
    users, items = nn.Embedding(20, 4).to(device), nn.Embedding(30, 4).to(device)
    opt = torch.optim.Adagrad([*users.parameters(), *items.parameters()], lr=0.1)
    popular = {k: torch.rand(30) for k in range(2)}
    #2> popular = {k: each.to(device) for k, each in popular.items()}
    ranks = []
    for step in range(24):
        u, i = torch.randint(0, 20, (8,), device=device), torch.randint(0, 30, (8,), device=device)
        scores = users(u) @ items.weight.T - popular[step % 2].to(device)  # 2
        #2> scores = users(u) @ items.weight.T - popular[step % 2]
        loss = F.cross_entropy(scores, i)
        descend(opt, loss)
        better = scores.detach() > scores.detach().gather(1, i[:, None])
        for row in range(8):
            ranks.append(better[row].sum(0, keepdim=True).item())  # 1
            #1> ranks.append(better[row].sum(0, keepdim=True).detach())
    #1> ranks = torch.stack(ranks).flatten().tolist()
    return ranks
