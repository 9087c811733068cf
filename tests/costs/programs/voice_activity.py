"""A detector of speech that counts loud frames, and prints each loss."""

import torch
from torch import nn
from torch.nn import functional as F


def run(device):
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(10, 16), nn.ReLU(), nn.Linear(16, 1)).to(device)
    adam = torch.optim.Adam(net.parameters(), lr=1e-2)
    frames, speech = torch.randn(24, 40, 10), (torch.rand(24, 40) > 0.5).float()
    windows, shown = 0, []
    for step, (clip, truth) in enumerate(zip(frames, speech)):
        clip, truth = clip.to(device), truth.to(device)
        scores = net(clip).squeeze(1)
        loss = F.binary_cross_entropy_with_logits(scores, truth)
        adam.zero_grad()
        loss.backward()
        adam.step()
        for score in scores.detach():  # -1
        #1> for score in scores.detach().tolist():
            if score > 0.0:  # 1
            #1> if score > 0.0:
                windows += 1
        line = f"{loss:.3f}"  # 2
        #2> line = f"{loss:.3f}" if step % 100 == 0 else ""
        if step % 100 == 0:
            shown.append(line)
    return windows, shown
