"""Small layers of torch_geometric, forward and backward: one line each, what came out or what was raised."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch_geometric.nn as gnn
from lines import print_lines

torch.set_num_threads(1)
NODES, EDGES = 20, 60
torch.manual_seed(0)
x = torch.rand(NODES, 16, requires_grad=True)
edges = torch.randint(0, NODES, (2, EDGES))
kinds = torch.randint(0, 3, (EDGES,))
places = torch.rand(NODES, 3)
graphs = torch.arange(NODES) // 5
dense, links = torch.rand(2, 8, 16), torch.rand(2, 8, 8)

LAYERS: dict[str, Callable[[], object]] = {
    **{
        name: lambda name=name: getattr(gnn, name)(16, 8)(x, edges)
        for name in (
            *("GCNConv", "SAGEConv", "GraphConv", "TAGConv", "ARMAConv", "SGConv", "ClusterGCNConv", "LEConv"),
            *("FiLMConv", "GeneralConv", "MFConv", "ResGatedGraphConv", "GENConv", "HypergraphConv"),
        )
    },
    **{
        name: lambda name=name: getattr(gnn, name)(16, 8, heads=4)(x, edges)
        for name in ("GATConv", "GATv2Conv", "TransformerConv", "FeaStConv", "SuperGATConv")
    },
    **{
        name: lambda name=name: getattr(gnn, name)(x, graphs)
        for name in ("global_add_pool", "global_mean_pool", "global_max_pool")
    },
    "EGConv": lambda: gnn.EGConv(16, 8, num_heads=4)(x, edges),
    "PDNConv": lambda: gnn.PDNConv(16, 8, 8, 4)(x, edges, torch.rand(EDGES, 8)),
    "NNConv": lambda: gnn.NNConv(16, 8, torch.nn.Linear(8, 128))(x, edges, torch.rand(EDGES, 8)),
    "RGCNConv": lambda: gnn.RGCNConv(16, 8, 3, num_bases=2)(x, edges, kinds),
    "FastRGCNConv": lambda: gnn.FastRGCNConv(16, 8, 3)(x, edges, kinds),
    "RGATConv": lambda: gnn.RGATConv(16, 8, 3, heads=2)(x, edges, kinds),
    "GMMConv": lambda: gnn.GMMConv(16, 8, 2, 3)(x, edges, torch.rand(EDGES, 2)),
    "PointNetConv": lambda: gnn.PointNetConv()(x, places, edges),
    "Set2Set": lambda: gnn.Set2Set(16, 2)(x, graphs),
    "SortAggregation": lambda: gnn.SortAggregation(3)(x, graphs),
    "LSTMAggregation": lambda: gnn.LSTMAggregation(16, 8)(x, graphs),
    "SetTransformerAggregation": lambda: gnn.aggr.SetTransformerAggregation(16, heads=4)(x, graphs),
    "dense_diff_pool": lambda: gnn.dense_diff_pool(dense, links, torch.rand(2, 8, 4)),
    "DMoNPooling": lambda: gnn.DMoNPooling(16, 4)(dense, links),
    "dense_mincut_pool": lambda: gnn.dense_mincut_pool(dense, links, torch.rand(2, 8, 4)),
    "MemPooling": lambda: gnn.MemPooling(16, 8, 2, 4)(x, graphs),
    "TopKPooling": lambda: gnn.TopKPooling(16)(x, edges),
    "ASAPooling": lambda: gnn.ASAPooling(16)(x, edges),
    "GraphUNet": lambda: gnn.GraphUNet(16, 8, 4, 2)(x, edges),
    "GPSConv": lambda: gnn.GPSConv(16, gnn.GCNConv(16, 16), heads=4)(x, edges, graphs),
}

print_lines(LAYERS, x)
