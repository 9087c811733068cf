"""transformers 4.27.4 keeps GPT-NeoX's angles as plain attributes and moves them in every forward."""

import torch
from transformers import GPTNeoXConfig, GPTNeoXModel


def run(device):
    torch.manual_seed(0)
    config = GPTNeoXConfig(
        vocab_size=40,
        hidden_size=16,
        intermediate_size=32,
        num_hidden_layers=4,
        num_attention_heads=2,
        max_position_embeddings=24,
    )
    model = GPTNeoXModel(config).to(device).eval()
    with torch.no_grad():
        for _ in range(6):
            out = model(torch.randint(0, 40, (1, 6), device=device)).last_hidden_state
    return out
