"""accelerate prepares model, optimizer and batches; transformers is the model, peft adapts it."""

import torch
from accelerate import Accelerator
from peft import LoraConfig, get_peft_model
from torch.utils.data import DataLoader, TensorDataset
from transformers import BertConfig, BertForSequenceClassification


def run(device):
    torch.manual_seed(0)
    accelerator = Accelerator(cpu=device == "cpu")
    config = BertConfig(
        vocab_size=50,
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
    model = get_peft_model(BertForSequenceClassification(config), LoraConfig(r=2, target_modules=["query", "value"]))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    words, labels = torch.randint(0, 50, (16, 8)), torch.randint(0, 2, (16,))
    model, optimizer, batches = accelerator.prepare(
        model, optimizer, DataLoader(TensorDataset(words, labels), batch_size=4)
    )
    for each, wanted in batches:
        optimizer.zero_grad()
        loss = model(input_ids=each, labels=wanted).loss
        accelerator.backward(loss)
        accelerator.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    return accelerator.gather(loss), [parameter for parameter in model.parameters() if parameter.requires_grad]
