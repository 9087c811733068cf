# %% right a buffer
class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("scale", torch.tensor([2.0, 3.0]))

    def forward(self, x):
        return x * self.scale

# %% right a buffer, and the dictionary kept for its name
class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("scale", torch.tensor([2.0, 3.0]), persistent=False)
        self.constants = {"scale": self.scale}

    def forward(self, x):
        return x * self.scale

# %% right a parameter in a dictionary of parameters
class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.constants = nn.ParameterDict({"scale": nn.Parameter(torch.tensor([2.0, 3.0]), requires_grad=False)})

    def forward(self, x):
        return x * self.constants["scale"]

# %% wrong a buffer that is not used
class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("scale", torch.tensor([2.0, 3.0]))
        self.constants = {"scale": self.scale}

    def forward(self, x):
        return x * self.constants["scale"]

# %% wrong a copy in each call
class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.constants = {"scale": torch.tensor([2.0, 3.0])}

    def forward(self, x):
        return x * self.constants["scale"].to(x.device)

# %% wrong made on the device, which it never leaves
class Scaled(nn.Module):
    scale = torch.tensor([2.0, 3.0], device=device)

    def forward(self, x):
        return x * self.scale

# %% wrong no scale any more
class Scaled(nn.Module):
    def forward(self, x):
        return x
