import math

from torch import nn
import torch
from torch.nn.utils.rnn import pack_padded_sequence


# Sampling of a diffusion model: each step reads a threshold and uses it there, and the schedule lies on the CPU.
STEPS = 16


@torch.no_grad()
def ddpm_threshold(device):
    model = nn.Sequential(nn.Linear(65, 32), nn.SiLU(), nn.Linear(32, 64)).to(device)
    betas = torch.linspace(1e-4, 0.02, STEPS)
    alphas_cumprod = torch.cumprod(1 - betas, 0)
    x = torch.rand(32, 64, device=device)
    for step in reversed(range(STEPS)):
        t = torch.full((32, 1), step / STEPS, device=device)
        noise = model(torch.cat([x, t], 1))
        a = alphas_cumprod[step].to(device)  # 2
        x = (x - (1 - a).sqrt() * noise) / a.sqrt()
        bound = x.abs().quantile(0.995).item()  # 1
        #1> bound = x.abs().quantile(0.995)
        x = x.clamp(-bound, bound) / bound
    return x.tolist()


# Detections are gone through one by one; the anchors go to the device for each image.
@torch.no_grad()
def boxes_of_images(device):
    backbone = nn.Linear(16, 5 * 20).to(device).eval()
    anchors = torch.rand(20, 4)
    found = []
    for image in torch.rand(10, 16, device=device):
        heads = backbone(image).view(20, 5)
        boxes = heads[:, :4] * 0.1 + anchors.to(device)  # 2
        scores = heads[:, 4].sigmoid()
        #1> scores = scores.cpu()
        best, best_at = -1.0, -1
        for at, score in enumerate(scores):
            if score > best:  # 1
            #1> if score > best:
                best, best_at = float(score), at  # -1
                #1> best, best_at = float(score), at
        found.append((best, best_at, boxes[best_at].tolist()))
    return found


# Particles move by their nearest distance, without any training.
def particles(device):
    at, speed = torch.rand(32, 2, device=device), torch.randn(32, 2, device=device)
    #1> picked = torch.where(~torch.eye(32, dtype=torch.bool, device=device))
    for _ in range(60):
        gap = torch.cdist(at, at)
        others = ~torch.eye(32, dtype=torch.bool, device=device)  # -1
        near = gap[others].min()  # 1
        #1> near = gap[picked].min()
        rate = torch.as_tensor(0.01).to(device)  # 2
        #2> rate = 0.01
        at = at + speed * rate * near
    return at.tolist()


# Text is generated with a cache of keys: a mask and a penalty are copied for each token.
WIDTH, WORDS, LONGEST = 16, 40, 128


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.keys = self.values = None

    def forward(self, x, at):
        q, k, v = self.qkv(x).chunk(3, -1)
        self.keys = k if self.keys is None else torch.cat([self.keys, k], 1)
        self.values = v if self.values is None else torch.cat([self.values, v], 1)
        seen = torch.tril(torch.ones(LONGEST, LONGEST)).to(x.device)  # 1
        weights = q @ self.keys.mT / math.sqrt(WIDTH)
        weights = weights.masked_fill(seen[at : at + x.shape[1], : self.keys.shape[1]] == 0, -math.inf)
        return self.out(weights.softmax(-1) @ self.values)


class Speaker(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.attention, self.head = nn.Embedding(WORDS, WIDTH), Attention(), nn.Linear(WIDTH, WORDS)

    def forward(self, ids, at):
        x = self.embed(ids)
        return self.head(x + self.attention(x, at))[:, -1]


@torch.inference_mode()
def cached_attention(device):
    speaker = Speaker().to(device).eval()
    penalty = torch.linspace(0, 1, WORDS)
    ids = torch.tensor([[3, 1, 4]], device=device)
    new, at = ids, 0
    while ids.shape[1] < 20:
        scores = speaker(new, at) - penalty.to(device)  # 2
        at += new.shape[1]
        new = scores.argmax(-1, keepdim=True)
        ids = torch.cat([ids, new], 1)
    return ids.tolist()


# A learning rate finder that looks at every gradient, and at every loss.
def rate_finder(device):
    net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3)).to(device)
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-5)
    rates, losses, steepness = [], [], []
    for x, y in zip(torch.rand(15, 16, 8, device=device), torch.randint(0, 3, (15, 16), device=device)):
        loss = nn.functional.cross_entropy(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        steepness.append([parameter.grad.abs().max().item() for parameter in net.parameters()])  # 1
        #1> steepness.append(torch.stack([parameter.grad.abs().max() for parameter in net.parameters()]))
        optimizer.step()
        rates.append(optimizer.param_groups[0]["lr"])
        losses.append(loss.item())  # 2
        for group in optimizer.param_groups:
            group["lr"] *= 1.5
    #1> steepness = torch.stack(steepness).tolist()
    return rates, losses, steepness


# Sentences of any length: how many words each has goes to the device and back to pack them, and a score is kept.
def tagger(device):
    embed, rnn = nn.Embedding(50, 8).to(device), nn.GRU(8, 8, batch_first=True).to(device)
    out = nn.Linear(8, 4).to(device)
    opt = torch.optim.Adam([*embed.parameters(), *rnn.parameters(), *out.parameters()])
    scores = []
    for words in torch.randint(1, 50, (14, 6, 5)):
        lengths = 3 + words[:, 0] % 3
        words = words.to(device)
        lengths = lengths.to(device)  # -1
        packed = pack_padded_sequence(embed(words), lengths.cpu(), batch_first=True, enforce_sorted=False)  # 1
        #1> packed = pack_padded_sequence(embed(words), lengths, batch_first=True, enforce_sorted=False)
        loss = out(rnn(packed)[1][0]).square().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        scores.append(loss.item())  # 2
    return scores
