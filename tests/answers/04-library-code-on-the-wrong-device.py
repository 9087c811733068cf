# %% right
def on_cuda(module):
    return module.device.type == "cuda"

# %% right as text
def on_cuda(module):
    return str(module.device).startswith("cuda")

# %% right by its parameters
def on_cuda(module):
    return all(parameter.is_cuda for parameter in module.parameters())

# %% wrong one device of many
def on_cuda(module):
    return module.device == torch.device("cuda:0")

# %% wrong a device without a number
def on_cuda(module):
    return module.device == torch.device("cuda")

# %% wrong there are more devices than two kinds
def on_cuda(module):
    return module.device.type != "cpu"

# %% wrong a text is never equal to a device
def on_cuda(module):
    return module.device == "cuda:0"
