# %% right
class Shifted(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.shifts = torch.nn.ParameterList([torch.nn.Parameter(torch.ones(4, device="cuda:0"))])

    def forward(self, x):
        return x + self.shifts[0]

# %% right an attribute
class Shifted(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.shift = torch.nn.Parameter(torch.ones(4))

    def forward(self, x):
        return x + self.shift

# %% wrong moved in each call, and trained by nobody
class Shifted(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.shifts = [torch.nn.Parameter(torch.ones(4, device="cuda:0"))]

    def forward(self, x):
        return x + self.shifts[0].to(x.device)

# %% wrong on the other GPU
class Shifted(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.shifts = [torch.nn.Parameter(torch.ones(4, device="cuda:1"))]

    def forward(self, x):
        return x + self.shifts[0]

# %% wrong no shift any more
class Shifted(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.shifts = torch.nn.ParameterList([torch.nn.Parameter(torch.zeros(4))])

    def forward(self, x):
        return x + self.shifts[0]
