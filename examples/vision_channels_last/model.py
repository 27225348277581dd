"""A small convolutional net: one flatten works in every memory format, the other only in the default one."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, classes=10):
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2))
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.gate = nn.Linear(8, 8)
        self.head = nn.Linear(8 * 4 * 4, classes)

    def forward(self, x):
        x = self.features(x)
        gate = self.pool(x).view(x.size(0), -1)  # 1 x 1 pixels: fits channels_last as well
        x = x * self.gate(gate).sigmoid()[:, :, None, None]
        return self.head(x.view(x.size(0), -1))  # merges channels with pixels


def main():
    torch.manual_seed(0)
    net, images = Net(), torch.rand(2, 3, 8, 8)
    expected = net(images)
    fast = net.to(memory_format=torch.channels_last)(images.to(memory_format=torch.channels_last))
    assert torch.allclose(expected, fast, atol=1e-5)


if __name__ == "__main__":
    main()
