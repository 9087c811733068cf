"""vector-quantize-pytorch: codes learnt as averages, by residuals and by levels, with a wait in each step."""

import torch
from torch import nn
from vector_quantize_pytorch import FSQ, ResidualVQ, VectorQuantize


def run(device):
    torch.manual_seed(0)
    data = torch.randn(4, 10, 8).to(device)
    kept = []
    for quantizer in (
        VectorQuantize(dim=8, codebook_size=16, decay=0.8, commitment_weight=1.0),
        ResidualVQ(dim=8, num_quantizers=3, codebook_size=8),
        FSQ(levels=[4, 4, 4], dim=8),
    ):
        model = nn.ModuleList([nn.Linear(8, 8), quantizer, nn.Linear(8, 8)]).to(device)
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
        for _ in range(3):
            quantized, indices, *commitment = model[1](model[0](data))
            loss = (model[2](quantized) - data).square().mean() + sum(each.sum() for each in commitment)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        kept += [loss.detach(), indices]
    return kept
