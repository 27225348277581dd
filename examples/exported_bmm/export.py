"""A model exported with a dynamic batch that has no upper bound, though its kernels have one."""

import torch
from torch import nn
from torch.export import Dim, export


class PairScores(nn.Module):
    def forward(self, left, right):
        return torch.bmm(left, right.transpose(1, 2))


def program():
    batch = Dim("batch")
    sample = (torch.rand(4, 3, 5), torch.rand(4, 2, 5))
    return export(PairScores(), sample, dynamic_shapes={"left": {0: batch}, "right": {0: batch}})


def main():
    exported = program()
    assert exported.module()(torch.ones(7, 3, 5), torch.ones(7, 2, 5)).shape == (7, 3, 2)
    bounds = [limit.upper for limit in exported.range_constraints.values()]
    assert all(bound <= 65535 for bound in bounds), f"the batch is bounded by {bounds}"


if __name__ == "__main__":
    main()
