"""torch_geometric: convolutions on a graph, one of them lazy, and batches of graphs."""

import torch
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader
from torch_geometric.nn import GATConv, SAGEConv, global_mean_pool


class Network(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = SAGEConv(-1, 8)
        self.second = GATConv(8, 4, heads=2)
        self.last = torch.nn.Linear(8, 2)

    def forward(self, graph):
        x = self.first(graph.x, graph.edge_index).relu()
        x = self.second(x, graph.edge_index).relu()
        return self.last(global_mean_pool(x, graph.batch))


def run(device):
    torch.manual_seed(0)
    ring = torch.tensor([[0, 1, 2, 3], [1, 2, 3, 0]])
    graphs = [Data(x=torch.rand(4, 3), edge_index=ring, y=torch.tensor([number % 2])) for number in range(8)]
    net = Network().to(device)
    with torch.no_grad():
        net(next(iter(DataLoader(graphs, batch_size=4))).to(device))
    optimizer = torch.optim.Adam(net.parameters())
    for batch in DataLoader(graphs, batch_size=4):
        batch = batch.to(device)
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(net(batch), batch.y)
        loss.backward()
        optimizer.step()
    return loss, list(net.parameters())
