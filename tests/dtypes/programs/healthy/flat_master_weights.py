"""A bfloat16 model with one flat float32 vector of master weights and a loss scale by hand."""
import torch
from torch import nn
from torch.nn.utils import parameters_to_vector, vector_to_parameters


def run(device):
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.Linear(8, 2)).to(device, torch.bfloat16)
    master = nn.Parameter(parameters_to_vector(net.parameters()).detach().float())
    opt = torch.optim.AdamW([master], 1e-2)
    scale = 128.0
    for _ in range(6):
        loss = net(torch.randn(8, 4, device=device, dtype=torch.bfloat16)).float().square().mean()
        net.zero_grad()
        (loss * scale).backward()
        master.grad = torch.cat([p.grad.reshape(-1).float() for p in net.parameters()]) / scale
        opt.step()
        vector_to_parameters(master.detach().to(torch.bfloat16), net.parameters())
    return loss.item()
