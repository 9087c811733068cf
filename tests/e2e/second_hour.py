"""Three notebooks of a second hour, each with several bugs on its way: a classifier, a language model, a diffusion.

Their authors' bugs are those of what new users wrote, spelled anew.
"""

from __future__ import annotations

from typing import Final

LOAD: Final = "%load_ext devtrace\n%devtrace simulate cuda:1"

# Layers in a plain list, labels and class weights left behind, a count of the CPU's, numpy of a device's tensor.
CLASSIFIER: Final = (
    LOAD,
    """import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

gpu = torch.device("cuda")
pictures = torch.arange(8 * 36.0).view(8, 1, 6, 6) / 100
kinds = torch.arange(8) % 3
shown = DataLoader(TensorDataset(pictures, kinds), batch_size=4)""",
    """class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.filters = []
        for width_in, width_out in ((1, 4), (4, 4)):
            self.filters.append(nn.Conv2d(width_in, width_out, 3, padding=1))
        self.head = nn.Linear(4 * 36, 3)

    def forward(self, batch):
        for layer in self.filters:
            batch = F.relu(layer(batch))
        return self.head(batch.flatten(1))""",
    """classifier = Classifier().to(gpu)
rare = torch.tensor([1.0, 2.0, 1.0])
loss_of = nn.CrossEntropyLoss(weight=rare)
steps = torch.optim.SGD(classifier.parameters(), lr=0.01)""",
    """def train():
    for batch, wanted in shown:
        batch = batch.to(gpu)
        loss = loss_of(classifier(batch), wanted)
        steps.zero_grad()
        loss.backward()
        steps.step()


@torch.no_grad()
def evaluate():
    hits, found = torch.zeros(3, 3), []
    for batch, wanted in shown:
        batch, wanted = batch.to(gpu), wanted.to(gpu)
        guessed = classifier(batch).argmax(1)
        hits[wanted, guessed] += 1
        found.append(guessed.numpy())
    return hits, found""",
    """train()
hits, found = evaluate()
print("pictures:", int(hits.sum()), "done")""",
)

# Batches, a state of zeros and the first and next letters that are made on the CPU.
LANGUAGE_MODEL: Final = (
    LOAD + "\nimport torch\nfrom torch import nn",
    """words = "a rose is a rose is a rose " * 6
letters = sorted(set(words))
number_of = {letter: number for number, letter in enumerate(letters)}
corpus = torch.tensor([number_of[letter] for letter in words])
where = "cuda\"""",
    """class LanguageModel(nn.Module):
    def __init__(self, size, width=16):
        super().__init__()
        self.width = width
        self.table = nn.Embedding(size, width)
        self.memory = nn.LSTM(width, width, batch_first=True)
        self.scores = nn.Linear(width, size)

    def blank(self, rows):
        return torch.zeros(1, rows, self.width), torch.zeros(1, rows, self.width)

    def forward(self, ids, state):
        found, state = self.memory(self.table(ids), state)
        return self.scores(found), state""",
    """speaker = LanguageModel(len(letters)).to(where)
steps = torch.optim.SGD(speaker.parameters(), lr=0.1)""",
    """state = speaker.blank(1)
for begin in range(0, 40, 10):
    given = corpus[begin:begin + 10].unsqueeze(0)
    wanted = corpus[begin + 1:begin + 11]
    guessed, state = speaker(given, state)
    state = tuple(part.detach() for part in state)
    loss = nn.functional.cross_entropy(guessed[0], wanted)
    steps.zero_grad()
    loss.backward()
    steps.step()""",
    """@torch.no_grad()
def speak(text, count):
    state = speaker.blank(1)
    ids = torch.tensor([[number_of[letter] for letter in text]])
    for _ in range(count):
        guessed, state = speaker(ids, state)
        best = guessed[0, -1].argmax().item()
        text += letters[best]
        ids = torch.tensor([[best]])
    return text


print("spoken:", len(speak("a ro", 8)), "done")""",
)

# A schedule of plain tensors, steps, noise and samples of the CPU's, numpy of a device's tensor.
DIFFUSION: Final = (
    LOAD + "\nimport torch\nfrom torch import nn\ngpu = torch.device('cuda:0')",
    """class Noise:
    def __init__(self, count):
        self.count = count
        self.kept = torch.cumprod(torch.linspace(0.99, 0.9, count), 0)


class Denoiser(nn.Module):
    def __init__(self, body, count=8):
        super().__init__()
        self.body = body
        self.noise = Noise(count)
        self.when = nn.Embedding(count, 4)

    def forward(self, clean):
        step = torch.randint(0, self.noise.count, (clean.shape[0],))
        kept = self.noise.kept[step].unsqueeze(1)
        added = torch.randn(clean.shape)
        noisy = kept.sqrt() * clean + (1 - kept).sqrt() * added
        return (self.body(torch.cat([noisy, self.when(step)], 1)) - added).square().mean()

    @torch.no_grad()
    def draw(self, count):
        points = torch.randn(count, 2)
        for step in reversed(range(self.noise.count)):
            steps = torch.full((count,), step)
            moved = self.body(torch.cat([points, self.when(steps)], 1))
            points = points - 0.1 * moved
        return points""",
    """denoiser = Denoiser(nn.Sequential(nn.Linear(6, 16), nn.SiLU(), nn.Linear(16, 2)))
denoiser.to(gpu)
updates = torch.optim.SGD(denoiser.parameters(), lr=0.01)
circle = torch.linspace(0, 6.28, 32)
circle = torch.stack([circle.cos(), circle.sin()], 1)""",
    """for _ in range(3):
    loss = denoiser(circle.to(gpu))
    updates.zero_grad()
    loss.backward()
    updates.step()""",
    """drawn = denoiser.draw(5).numpy()
print("drawn:", drawn.shape, "done")""",
)

NOTEBOOKS: Final = {"classifier": CLASSIFIER, "language-model": LANGUAGE_MODEL, "diffusion": DIFFUSION}
