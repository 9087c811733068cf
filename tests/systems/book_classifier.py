"""LLMs-from-scratch, chapter 6 (#172): the head is replaced after the model was moved. The real package."""

from __future__ import annotations

import torch
from llms_from_scratch.ch04 import GPTModel
from llms_from_scratch.ch06 import calc_loss_batch

CONFIG = {
    "vocab_size": 200,
    "context_length": 64,
    "emb_dim": 12,
    "n_heads": 2,
    "n_layers": 1,
    "drop_rate": 0.0,
    "qkv_bias": True,
}


def run(where: str, again: str = "") -> None:
    device = torch.device(where)
    torch.manual_seed(123)
    model = GPTModel(CONFIG)
    for param in model.parameters():
        param.requires_grad = False
    model.to(device)

    num_classes = 2
    model.out_head = torch.nn.Linear(in_features=CONFIG["emb_dim"], out_features=num_classes)
    if again:
        model.to(device)

    optimizer = torch.optim.AdamW(model.out_head.parameters(), lr=5e-5, weight_decay=0.1)
    for _ in range(2):
        input_batch, target_batch = torch.randint(0, 200, (8, 16)), torch.randint(0, num_classes, (8,))
        optimizer.zero_grad()
        loss = calc_loss_batch(input_batch, target_batch, model, device)
        loss.backward()
        optimizer.step()
