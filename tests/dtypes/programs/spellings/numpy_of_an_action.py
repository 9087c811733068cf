# target-dtype, state, bfloat16
import torch
from torch import nn


@torch.no_grad()
def run(device):
    policy = nn.Linear(4, 2).to(device, torch.bfloat16)
    state = torch.ones(3, 4, device=device, dtype=torch.bfloat16)  # born
    action = policy(state).cpu().numpy()  # failed
    return action.sum()
