# %% en
# # The first trace
#
# The first line loads devtrace into this notebook; `%%devtrace` on the first line of a cell traces that cell.

# %% code
%load_ext devtrace

# %% code
%%devtrace
import torch

x = torch.ones(3)
x + 1
