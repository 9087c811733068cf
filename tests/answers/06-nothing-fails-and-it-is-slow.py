# %% right added up on the device
def accuracy(model, xs, ys):
    right = torch.zeros((), device=xs.device)
    for x, y in zip(xs, ys):
        right += (model(x).argmax(1) == y).sum()
    return right.item() / ys.numel()

# %% right all at once
def accuracy(model, xs, ys):
    return (model(xs.flatten(0, 1)).argmax(1) == ys.flatten()).float().mean().item()

# %% right kept in a list
def accuracy(model, xs, ys):
    hits = [(model(x).argmax(1) == y).float() for x, y in zip(xs, ys)]
    return float(torch.cat(hits).mean())

# %% right counted on the CPU, after one copy
def accuracy(model, xs, ys):
    hits = torch.stack([model(x).argmax(1) == y for x, y in zip(xs, ys)]).cpu().numpy()
    return hits.mean()

# %% wrong two waits a batch
def accuracy(model, xs, ys):
    right = seen = 0
    for x, y in zip(xs, ys):
        right += (model(x).argmax(1) == y).sum().item()
        seen += int((y >= 0).sum())
    return right / seen

# %% wrong one wait a batch
def accuracy(model, xs, ys):
    return sum((model(x).argmax(1) == y).sum().item() for x, y in zip(xs, ys)) / ys.numel()

# %% wrong no waits, and no accuracy
def accuracy(model, xs, ys):
    return 0.5

# %% wrong nothing given back
def accuracy(model, xs, ys):
    (model(xs).argmax(2) == ys).float().mean()
