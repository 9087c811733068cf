# target-dtype, example["label"], float32
import torch
import torch.nn.functional as F
from torch import nn
import pandas as pd


class Table(torch.utils.data.Dataset):
    def __init__(self, frame):
        self.x = torch.tensor(frame[["a", "b"]].to_numpy(dtype="float32"))
        self.y = torch.tensor(frame["label"].to_numpy(dtype="float32"))  # born
    def __len__(self):
        return len(self.x)
    def __getitem__(self, i):
        return {"x": self.x[i], "label": self.y[i]}


def run(device):
    torch.manual_seed(0)
    frame = pd.DataFrame({"a": [0.1, 0.2, 0.3], "b": [1.0, 0.0, 1.0], "label": [0, 2, 1]})
    loader = torch.utils.data.DataLoader(Table(frame), batch_size=3)
    net, total = nn.Linear(2, 3), 0.0
    for example in loader:
        loss = F.cross_entropy(net(example["x"]), example["label"])  # failed
        total += loss.item()
    return total
