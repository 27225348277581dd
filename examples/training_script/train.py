"""A training script with its batch size written into a view: the last, shorter batch stops it."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

BATCH = 8


class Classifier(nn.Module):
    def __init__(self, classes=4):
        super().__init__()
        self.hidden = nn.Linear(6, 12)
        self.head = nn.Linear(12, classes)

    def forward(self, x):
        b, c, h = x.shape
        x = torch.relu(self.hidden(x.view(BATCH, c * h)))
        return self.head(x)


def train(rows=20):
    torch.manual_seed(0)
    data = TensorDataset(torch.randn(rows, 2, 3), torch.randint(4, (rows,)))
    model = Classifier()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    seen = 0
    for inputs, labels in DataLoader(data, batch_size=BATCH):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(inputs), labels).backward()
        optimizer.step()
        seen += len(labels)
    return seen


if __name__ == "__main__":
    assert train() == 20
