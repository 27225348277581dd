"""Operators and models of kornia, forward and backward: one line each, what came out or what was raised."""

from __future__ import annotations

from collections.abc import Callable

import kornia as K
import torch
from lines import print_lines

torch.set_num_threads(1)
torch.manual_seed(0)
x = torch.rand(2, 3, 64, 64, requires_grad=True)
points = torch.rand(2, 8, 2) * 60
others = points + torch.rand_like(points)
labels = torch.randint(0, 3, (2, 64, 64))
patches = torch.rand(4, 1, 32, 32)

OPERATORS: dict[str, Callable[[], object]] = {
    "gaussian_blur2d": lambda: K.filters.gaussian_blur2d(x, (5, 5), (1.5, 1.5)),
    "median_blur": lambda: K.filters.median_blur(x, (3, 3)),
    "bilateral_blur": lambda: K.filters.bilateral_blur(x, (3, 3), 0.1, (1.5, 1.5)),
    "canny": lambda: K.filters.canny(x),
    "spatial_gradient": lambda: K.filters.spatial_gradient(x),
    "guided_blur": lambda: K.filters.guided_blur(x, x, 3, 0.1),
    "find_homography_dlt": lambda: K.geometry.homography.find_homography_dlt(points, others),
    "warp_perspective": lambda: K.geometry.transform.warp_perspective(x, torch.eye(3).expand(2, 3, 3), (64, 64)),
    "rotate": lambda: K.geometry.transform.rotate(x, torch.tensor([10.0, 20.0])),
    "build_pyramid": lambda: K.geometry.transform.build_pyramid(x, 3),
    "rgb_to_hsv": lambda: K.color.rgb_to_hsv(x),
    "rgb_to_lab": lambda: K.color.rgb_to_lab(x),
    "equalize_clahe": lambda: K.enhance.equalize_clahe(x),
    "zca_whiten": lambda: K.enhance.zca_whiten(x.reshape(2, -1)[:, :64]),
    "ssim": lambda: K.metrics.ssim(x, x * 0.9, 5),
    "dice_loss": lambda: K.losses.dice_loss(x, labels),
    "focal_loss": lambda: K.losses.focal_loss(x, labels, 0.5, reduction="mean"),
    "harris_response": lambda: K.feature.harris_response(x),
    "HardNet": lambda: K.feature.HardNet(False)(patches),
    "SIFTDescriptor": lambda: K.feature.SIFTDescriptor(32)(patches),
    "extract_patches": lambda: K.feature.extract_patches_from_pyramid(x[:, :1], torch.rand(2, 5, 2, 3) * 20, 16),
    "KeyNet": lambda: K.feature.KeyNet(False)(x[:, :1]),
    "find_fundamental": lambda: K.geometry.epipolar.find_fundamental(points, others),
    "depth_to_3d": lambda: K.geometry.depth.depth_to_3d(x[:, :1], torch.eye(3)[None].repeat(2, 1, 1)),
    "TinyViT": lambda: K.contrib.TinyViT()(torch.rand(1, 3, 224, 224)),
    "So3": lambda: K.geometry.liegroup.So3.exp(torch.rand(4, 3)).matrix(),
    "distance_transform": lambda: K.contrib.distance_transform(x[:, :1]),
    "extract_tensor_patches": lambda: K.contrib.extract_tensor_patches(x, 16, 16),
}

print_lines(OPERATORS, x)
