import math

from torch import nn
import torch


# Generation with a cache: the mask is a buffer, the words stay on the device, and one check ends the loop.
WIDTH, WORDS, LONGEST = 16, 40, 24


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.register_buffer("seen", torch.tril(torch.ones(LONGEST, LONGEST, dtype=torch.bool)), persistent=False)

    def forward(self, x, cache):
        q, k, v = self.qkv(x).chunk(3, -1)
        at = 0 if cache is None else cache[0].shape[1]
        if cache is not None:
            k, v = torch.cat([cache[0], k], 1), torch.cat([cache[1], v], 1)
        weights = q @ k.mT / math.sqrt(WIDTH)
        weights = weights.masked_fill(~self.seen[at : at + x.shape[1], : k.shape[1]], -math.inf)
        return self.out(weights.softmax(-1) @ v), (k, v)


class Speaker(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.attention, self.head = nn.Embedding(WORDS, WIDTH), Attention(), nn.Linear(WIDTH, WORDS)

    def forward(self, ids, cache=None):
        x = self.embed(ids)
        mixed, cache = self.attention(x, cache)
        return self.head(x + mixed)[:, -1], cache


@torch.inference_mode()
def cached_generation(device):
    speaker = Speaker().to(device).eval()
    ids = torch.tensor([[3, 1, 4], [1, 5, 9]], device=device)
    ended, cache, new = torch.zeros(2, dtype=torch.bool, device=device), None, ids
    while ids.shape[1] < LONGEST:
        scores, cache = speaker(new, cache)
        new = scores.argmax(-1, keepdim=True)
        new = torch.where(ended[:, None], 0, new)
        ids = torch.cat([ids, new], 1)
        ended |= new[:, 0] == 7
        if ended.all():
            break
    return ids.tolist()


# Words are drawn until the last one, which the host has to see; all that is written is read at once.
def words_out(device):
    table, cell, head = nn.Embedding(30, 12).to(device), nn.GRUCell(12, 12).to(device), nn.Linear(12, 30).to(device)
    texts = []
    with torch.inference_mode():
        for _ in range(4):
            state, word, words = torch.zeros(1, 12, device=device), torch.ones(1, dtype=torch.long, device=device), []
            for _ in range(15):
                state = cell(table(word), state)
                word = head(state).argmax(1)
                words.append(word)
                if word.item() == 0:
                    break
            texts.append(torch.cat(words).tolist())
    return texts


# Beam search that reads all scores and words of a step at once: the lists of words live on the CPU.
BEAMS, WORDS, END = 4, 12, 11


@torch.no_grad()
def beam_search(device):
    model = nn.Sequential(nn.Embedding(WORDS, 8), nn.Linear(8, WORDS)).to(device).eval()
    bias = torch.arange(BEAMS, device=device)[:, None] * 0.01
    beams, done = [([0], 0.0)] * BEAMS, []
    last = torch.zeros(BEAMS, dtype=torch.long, device=device)
    for _ in range(14):
        scores, flat = (model(last).log_softmax(-1) + bias).flatten().topk(BEAMS)
        grown = []
        for score, at in zip(scores.tolist(), flat.tolist()):
            words, total = beams[at // WORDS]
            grown.append((words + [at % WORDS], total + score))
        done += [beam for beam in grown if beam[0][-1] == END]
        beams, last = grown, flat % WORDS
    return sorted(done + beams, key=lambda beam: -beam[1])[0]


# Detections come to the CPU once an image, where overlapping boxes are left out one by one.
def overlap(a, b):
    width = max(0.0, min(a[2], b[2]) - max(a[0], b[0]))
    height = max(0.0, min(a[3], b[3]) - max(a[1], b[1]))
    inner = width * height
    return inner / ((a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - inner)


@torch.no_grad()
def suppressed_boxes(device):
    head = nn.Linear(16, 5 * 20).to(device).eval()
    anchors = torch.rand(20, 2, device=device)
    images = torch.rand(10, 16)
    found = []
    for image in images:
        out = head(image.to(device)).view(20, 5)
        corners = torch.cat([anchors, anchors + out[:, 2:4].exp()], 1)
        scores, order = out[:, 4].sigmoid().sort(descending=True)
        detections = torch.cat([corners[order], scores[:, None]], 1).cpu()
        kept = []
        for row in detections:
            if row[4] < 0.4:
                break
            if all(overlap(row[:4].tolist(), other[:4].tolist()) < 0.5 for other in kept):
                kept.append(row)
        found.append(len(kept))
    return found


# Evaluation with a meter: sums stay tensors until the epoch is over, and predictions are copied batch by batch.
class Meter:
    def __init__(self):
        self.total, self.count = 0.0, 0

    def update(self, value, n):
        self.total = self.total + value.detach() * n
        self.count += n

    @property
    def average(self):
        return float(self.total) / self.count


@torch.no_grad()
def evaluated(net, batches, device):
    loss, right, answers = Meter(), Meter(), []
    net.eval()
    for x, y in batches:
        x, y = x.to(device, non_blocking=True), y.to(device, non_blocking=True)
        out = net(x)
        loss.update(nn.functional.cross_entropy(out, y), len(x))
        right.update((out.argmax(1) == y).float().mean(), len(x))
        answers.append(out.softmax(1).cpu())
    return loss.average, right.average, torch.cat(answers)


def averaged(device):
    net = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.BatchNorm1d(8), nn.Linear(8, 3)).to(device)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
    data = [(torch.rand(16, 6), torch.randint(0, 3, (16,))) for _ in range(12)]
    best = 9e9
    for _ in range(3):
        net.train()
        for x, y in data:
            optimizer.zero_grad()
            nn.functional.cross_entropy(net(x.to(device)), y.to(device)).backward()
            optimizer.step()
        loss, _, answers = evaluated(net, data, device)
        if loss < best:
            best, kept = loss, {name: value.cpu() for name, value in net.state_dict().items()}
    return len(kept), answers.shape
