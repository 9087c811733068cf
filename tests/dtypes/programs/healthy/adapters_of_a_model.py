"""Every linear layer of a bfloat16 model gets a float32 adapter; only these are trained and saved."""
import torch
from torch import nn
import torch.nn.functional as F


class LoraLinear(nn.Module):
    def __init__(self, base, r=2, alpha=4):
        super().__init__()
        self.base, self.scale = base, alpha / r
        for p in base.parameters():
            p.requires_grad = False
        self.A = nn.Parameter(torch.randn(r, base.in_features, device=base.weight.device) * 0.01)
        self.B = nn.Parameter(torch.zeros(base.out_features, r, device=base.weight.device))
        self.drop = nn.Dropout(0.05)

    def forward(self, x):
        h = self.base(x)
        z = self.drop(x.to(self.A.dtype)) @ self.A.T @ self.B.T * self.scale
        return h + z.to(h.dtype)


def wrap(model):
    for name, child in list(model.named_children()):
        if isinstance(child, nn.Linear):
            setattr(model, name, LoraLinear(child))
        else:
            wrap(child)
    return model


def run(device):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Embedding(13, 8), nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 13)).half().to(device)
    model = wrap(model.bfloat16())
    opt = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], 1e-2)
    for _ in range(6):
        ids = torch.randint(0, 13, (2, 7), device=device)
        logits = model(ids)
        loss = F.cross_entropy(logits[:, :-1].reshape(-1, 13).float(), ids[:, 1:].reshape(-1))
        loss.backward()
        opt.step()
        opt.zero_grad()
    state = {k: v for k, v in model.state_dict().items() if k.endswith((".A", ".B"))}
    model.load_state_dict(state, strict=False)
    return loss.item()
