# never-cast, critic.0.weight, float32
import torch
from torch import nn


def network(width):
    return nn.Sequential(nn.Linear(6, width), nn.ReLU(), nn.Linear(width, 1))  # born


def play(policy, critic, state):
    action = policy(state)
    value = critic(state)  # failed
    return (action + value).mean()


def run(device):
    torch.manual_seed(0)
    policy = network(8).bfloat16()
    critic = network(4)
    return play(policy, critic, torch.randn(3, 6, dtype=torch.bfloat16)).item()
