"""x-transformers: a decoder learns a sequence and continues it."""

import torch
from x_transformers import AutoregressiveWrapper, Decoder, TransformerWrapper


def run(device):
    torch.manual_seed(0)
    decoder = TransformerWrapper(num_tokens=16, max_seq_len=12, attn_layers=Decoder(dim=16, depth=2, heads=2))
    model = AutoregressiveWrapper(decoder).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    text = torch.arange(12, device=device).remainder(7).repeat(3, 1)
    for _ in range(3):
        optimizer.zero_grad()
        loss = model(text)
        loss.backward()
        optimizer.step()
    model.eval()
    logits = decoder(text[:, :5])
    return loss, logits
