"""botorch and gpytorch: a Gaussian process is fitted by scipy, which works on the CPU."""

import torch
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from gpytorch.mlls import ExactMarginalLogLikelihood


def run(device):
    torch.manual_seed(0)
    x = torch.rand(6, 2, dtype=torch.double).to(device)
    y = x.prod(-1, keepdim=True)
    process = SingleTaskGP(x, y)
    fit_gpytorch_mll(ExactMarginalLogLikelihood(process.likelihood, process))
    return process.posterior(x).mean
