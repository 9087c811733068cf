# %% right
model = GPTModel(config).to(device)
optimizer = torch.optim.AdamW(model.parameters())
model.out_head = torch.nn.Linear(config["emb_dim"], 2).to(device)

forgotten = ["out_head.weight", "out_head.bias"]

# %% right as devtrace calls them, in any order
forgotten = ("model.out_head.bias", "model.out_head.weight")

# %% right found by a program
held = {parameter for group in optimizer.param_groups for parameter in group["params"]}
forgotten = {name for name, parameter in model.named_parameters() if parameter not in held}

# %% wrong one of two
forgotten = ["out_head.weight"]

# %% wrong all of them
forgotten = [name for name, _ in model.named_parameters()]
