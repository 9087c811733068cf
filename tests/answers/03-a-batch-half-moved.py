# %% right
def to_device(batch, device):
    if torch.is_tensor(batch):
        return batch.to(device)
    if isinstance(batch, dict):
        return {key: to_device(item, device) for key, item in batch.items()}
    if isinstance(batch, (list, tuple)):
        return type(batch)(to_device(item, device) for item in batch)
    return batch

# %% right with torch's own tree of containers
def to_device(batch, device):
    from torch.utils._pytree import tree_map_only

    return tree_map_only(torch.Tensor, lambda tensor: tensor.to(device, non_blocking=True), batch)

# %% right asking what each thing can do
def to_device(batch, device):
    if hasattr(batch, "items"):
        return {key: to_device(item, device) for key, item in batch.items()}
    if isinstance(batch, (list, tuple)):
        return [to_device(item, device) for item in batch]
    return batch.to(device) if hasattr(batch, "to") else batch

# %% wrong only the first level
def to_device(batch, device):
    return {key: item.to(device) if torch.is_tensor(item) else item for key, item in batch.items()}

# %% wrong what is no tensor is lost
def to_device(batch, device):
    if torch.is_tensor(batch):
        return batch.to(device)
    if isinstance(batch, dict):
        return {key: to_device(item, device) for key, item in batch.items()}
    if isinstance(batch, (list, tuple)):
        return [to_device(item, device) for item in batch]

# %% wrong text has no .to
def to_device(batch, device):
    if isinstance(batch, dict):
        return {key: to_device(item, device) for key, item in batch.items()}
    if isinstance(batch, (list, tuple)):
        return [to_device(item, device) for item in batch]
    return batch.to(device)
