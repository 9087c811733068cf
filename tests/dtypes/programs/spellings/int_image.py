# numpy-boundary, obs, uint8
# untraced: never-cast
import torch
from torch import nn
import numpy as np
from collections import deque


class Stack:
    def __init__(self, n):
        self.frames = deque(maxlen=n)
    def push(self, frame):
        self.frames.append(torch.from_numpy(frame))
    def state(self):
        frames = self.frames
        return torch.stack(list(frames))[None]  # born


def run(device):
    torch.manual_seed(0)
    rng = np.random.default_rng(1)
    stack = Stack(4)
    for _ in range(4):
        stack.push(rng.integers(0, 255, (10, 10), dtype=np.uint8))
    policy = nn.Sequential(nn.Conv2d(4, 3, 3), nn.Flatten(), nn.Linear(192, 2))
    obs = stack.state()
    return policy(obs).sum().item()  # failed
