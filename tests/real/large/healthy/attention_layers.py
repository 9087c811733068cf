"""x-transformers as it is today: an encoder and a decoder with rotary positions, and a continuation from a cache."""

import torch
from x_transformers import AutoregressiveWrapper, Decoder, Encoder, TransformerWrapper


def run(device):
    torch.manual_seed(0)
    encoder = TransformerWrapper(
        num_tokens=16, max_seq_len=12, attn_layers=Encoder(dim=16, depth=2, heads=2, rel_pos_bias=True)
    ).to(device)
    decoder = TransformerWrapper(
        num_tokens=16,
        max_seq_len=16,
        attn_layers=Decoder(dim=16, depth=2, heads=2, rotary_pos_emb=True, attn_flash=True, cross_attend=True),
    )
    model = AutoregressiveWrapper(decoder).to(device)
    optimizer = torch.optim.AdamW([*encoder.parameters(), *model.parameters()], lr=1e-3)
    text = torch.arange(12, device=device).remainder(7).repeat(3, 1)
    mask = torch.ones_like(text, dtype=torch.bool)
    for _ in range(3):
        context = encoder(text, mask=mask, return_embeddings=True)
        loss = model(text, context=context, context_mask=mask)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    context = encoder(text, mask=mask, return_embeddings=True).detach()
    return loss, model.generate(text[:, :4], 4, temperature=0.0, context=context, context_mask=mask)
