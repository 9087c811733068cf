"""torchsummary 1.5.1 makes its input on the GPU, wherever the model is."""

from torch import nn
from torchsummary import summary


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(3, 4, kernel_size=3)
        self.last = nn.Linear(4 * 6 * 6, 2)

    def forward(self, images):
        return self.last(self.first(images).relu().flatten(1))


def run(device):
    summary(Classifier(), (3, 8, 8))
