"""Beam search: each hypothesis reads its own score and word; the offsets of the beams are made anew for each word."""

import torch
from torch import nn

BEAMS, WORDS = 4, 12


@torch.no_grad()
def run(device):
    torch.manual_seed(0)
    step_model = nn.Sequential(nn.Embedding(WORDS, 8), nn.Linear(8, WORDS)).to(device)
    beams = [([0], 0.0) for _ in range(BEAMS)]
    last = torch.zeros(BEAMS, dtype=torch.long, device=device)
    for _ in range(12):
        scores = step_model(last).log_softmax(-1)
        offsets = torch.arange(BEAMS).to(device)  # 2
        scores = scores + 0.01 * offsets[:, None]
        top = scores.flatten().topk(BEAMS)
        kept = []
        #1> top_scores, top_indices = top.values.tolist(), top.indices.tolist()
        for rank in range(BEAMS):
            flat, score = top.indices[rank].item(), top.values[rank].item()  # 1
            #1> flat, score = top_indices[rank], top_scores[rank]
            words, total = beams[flat // WORDS]
            kept.append((words + [flat % WORDS], total + score))
        beams = kept
        last = top.indices % WORDS
    return beams
