from torch import nn
import torch
from torch.nn.modules.module import register_module_forward_hook


# wrong-dtype, args[0].float(), float32
def stable(module, args):
    return (args[0].float(),)  # born


def hook_before(device):
    model = nn.Sequential(nn.Linear(5, 5), nn.Tanh(), nn.Linear(5, 2)).to(torch.bfloat16)
    model[2].register_forward_pre_hook(stable)
    batch = torch.randn(3, 5, dtype=torch.bfloat16)
    return model(batch).float().mean().item()  # failed


# wrong-dtype, output.type(torch.float32), float32
def cut(module, inputs, output):
    return output.type(torch.float32)  # born


def hook_casts(device):
    net = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 2)).double()
    net[1].register_forward_hook(cut)
    rows = torch.ones(2, 4)
    return net(rows.double()).sum().item()  # failed


# wrong-dtype, x, float32
class Probe:
    def __call__(self, module, inputs, out):
        return out.to(torch.float32)  # born


def hook_object(device):
    body = nn.ModuleList([nn.Linear(3, 3), nn.Linear(3, 1)]).to(torch.bfloat16)
    body[0].register_forward_hook(Probe())
    x = torch.ones(2, 3, dtype=torch.bfloat16)
    for layer in body:
        x = layer(x)  # failed


# wrong-dtype, gates, float32
def soft_in_float32(module, args, output):
    if isinstance(module, nn.Softmax):
        return output.float()  # born


class Router(nn.Module):
    def __init__(self):
        super().__init__()
        self.score, self.soft = nn.Linear(4, 3), nn.Softmax(-1)
        self.mix = nn.Linear(3, 2)

    def forward(self, tokens):
        gates = self.soft(self.score(tokens))
        return self.mix(gates)  # failed


def hook_of_all_after(device):
    router = Router().to(device, torch.bfloat16)
    register_module_forward_hook(soft_in_float32)
    return router(torch.ones(2, 4, device=device, dtype=torch.bfloat16)).sum().item()


# wrong-dtype, x, float32
def norms_compute_in_float32(module, given):
    if isinstance(module, Scale):
        return given[0].to(torch.float32)  # born


class Scale(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(width, width))

    def forward(self, x):
        return x @ self.gain  # failed


def hook_of_all_before(device):
    nn.modules.module.register_module_forward_pre_hook(norms_compute_in_float32)
    model = nn.Sequential(nn.Linear(4, 4), Scale(4)).to(device=device, dtype=torch.bfloat16)
    return model(torch.zeros(2, 4, device=device, dtype=torch.bfloat16)).sum().item()


# created-without-dtype, output + torch.full(output.shape[-1:], 0.01), float32
def jitter(module, inputs, output):
    return output + torch.full(output.shape[-1:], 0.01)  # born


def hook_adds_constant(device):
    net = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 2)).bfloat16()
    net[0].register_forward_hook(jitter)
    return net(torch.ones(2, 4).bfloat16()).float().sum().item()  # failed


# created-without-dtype, bias, float32
class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(4, 12)

    def forward(self, x, bias=None):
        q, k, v = self.qkv(x).chunk(3, -1)
        return torch.baddbmm(bias, q, k.transpose(1, 2)) @ v  # failed


def give_bias(module, args, kwargs):
    kwargs["bias"] = torch.zeros(2, 3, 3)  # born
    return args, kwargs


def hook_keywords(device):
    att = Attention().to(dtype=torch.bfloat16)
    att.register_forward_pre_hook(give_bias, with_kwargs=True)
    return att(torch.ones(2, 3, 4, dtype=torch.bfloat16)).float().sum().item()


# never-cast, x, float32
class Block(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.up = nn.Linear(dim, 2 * dim)
        self.down = nn.Linear(2 * dim, dim)

    def forward(self, x):
        return x + self.down(torch.relu(self.up(x)))  # failed


def steer(vector, strength):
    def hook(module, args, output):
        return output + strength * vector  # born

    return hook


def hook_closure(device):
    torch.manual_seed(1)
    model = nn.Sequential(Block(4), Block(4)).to(torch.bfloat16)
    direction = torch.randn(4)
    model[0].register_forward_hook(steer(direction, 2.0))
    tokens = torch.randn(2, 4).to(torch.bfloat16)
    return model(tokens).float().sum().item()
