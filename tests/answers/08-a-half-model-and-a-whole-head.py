# %% right
def score(net, head, x):
    return head(net(x).float())

# %% right in the dtype of the head
def score(net, head, x):
    return head(net(x).to(head.weight.dtype))

# %% right by the functions
def score(net, head, x):
    hidden = net(x).type(torch.float32)
    return F.linear(hidden, head.weight, head.bias)

# %% wrong the scores are coarse
def score(net, head, x):
    return F.linear(net(x), head.weight.bfloat16(), head.bias.bfloat16()).float()

# %% wrong a device that is not there
def score(net, head, x):
    return head(net(x.to("cuda")).float())

# %% wrong nothing is cast
def score(net, head, x):
    return head(net(x))
