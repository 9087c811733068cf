import torch
from torch import nn


def collate(samples):
    return {
        "text": {"ids": torch.stack([s[0] for s in samples]), "mask": torch.stack([s[1] for s in samples])},
        "label": torch.tensor([s[2] for s in samples]),
    }


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(50, 8)
        self.out = nn.Linear(8, 2)

    def forward(self, ids, mask):
        h = self.embed(ids) * mask.unsqueeze(-1)
        return self.out(h.sum(1) / mask.sum(1, keepdim=True))


def run(device):
    samples = [(torch.randint(0, 50, (5,)), torch.ones(5), i % 2) for i in range(8)]
    loader = torch.utils.data.DataLoader(samples, batch_size=4, collate_fn=collate)
    model = Classifier().to(device)
    for batch in loader:
        batch = {k: v.to(device) if torch.is_tensor(v) else v for k, v in batch.items()}
        logits = model(batch["text"]["ids"], batch["text"]["mask"])
        nn.functional.cross_entropy(logits, batch["label"]).backward()
