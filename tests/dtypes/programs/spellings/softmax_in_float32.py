# wrong-dtype, probs, float32
import torch


def attend(q, k, v):
    scores = q @ k.mT / q.shape[-1] ** 0.5
    probs = scores.softmax(-1, dtype=torch.float32)  # born
    return probs @ v  # failed


def run(device):
    q, k, v = torch.rand(3, 2, 5, 4, dtype=torch.bfloat16).unbind()
    return attend(q, k, v).float().sum().item()
