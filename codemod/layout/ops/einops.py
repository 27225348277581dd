"""einops: the left side splits dims, the right side permutes, reduces or adds axes, and merges them by reshape.

Source: einops 0.8, _apply_recipe.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from string import ascii_lowercase

from codemod.layout.layout import Dim, Layout, Pack, World, restrided
from codemod.layout.ops.reshaped import reshaped
from codemod.layout.ops.rule import Alias, Outcome, Text, op
from codemod.layout.ops.window import quotient
from codemod.layout.record import record
from codemod.layout.size import UNKNOWN, ZERO, Size, product
from codemod.layout.viewable import Target

Group = tuple[str, ...]
Lengths = Mapping[str, Size]

AXES = (
    *ascii_lowercase,
    *(f"{letter}{i}" for letter in "bcdhlnpstwxyz" for i in (0, 1, 2, 3)),
    *("bs", "ch", "dh", "dim", "dim_head", "dw", "group", "groups", "head", "head_dim", "heads", "kh", "kw", "nh"),
    *("nw", "num_heads", "patch", "patch_size", "ph", "pt", "pw", "qkv", "three", "two", "wh", "window", "ws", "ww"),
)
"""Names that may be given lengths by keyword; the length of any other is taken for unknown."""


@record(frozen=True, slots=True)
class Axes:
    """An input split into its elementary axes, in the order of the left side."""

    names: tuple[str, ...]
    layout: Layout
    ellipsis: Group
    """Names made up for the dims behind `...`."""

    def dim(self, name: str) -> Dim:
        return self.layout.dims[self.names.index(name)]


def transformed(tensor: Layout, pattern: Text, lengths: Lengths, world: World) -> Layout | None:
    """None where an axis has no known length, or a dim of the pattern is not told apart."""
    left, arrow, right = (pattern or "").partition("->")
    axes = _split(tensor, _numbered(_groups(left)), lengths) if arrow else None
    if axes is None:
        return None
    groups = [axes.ellipsis if group == ("...",) else _spelled(group, axes) for group in _groups(right)]
    wanted = [name for group in groups for name in group]
    kept = [name for name in wanted if name in axes.names]
    if len(set(kept)) != len(kept):
        return None
    ordered = Layout(tuple(axes.dim(name) for name in kept))
    if len(kept) < len(axes.names):
        ordered = restrided(ordered)
    placed = dict(zip(kept, ordered.dims, strict=True))
    added = {name: Dim(_length(name, lengths), ZERO) for name in wanted if name not in placed}
    if any(dim.size.terms is None for dim in added.values()):
        return None
    full = Layout(tuple((placed | added)[name] for name in wanted))
    return _merged(full, wanted, groups, _groups(right), world)


def _groups(side: str) -> list[Group]:
    """`b (h d) 1 ...` to (b,) (h, d) () (...,)."""
    found = []
    for text in re.findall(r"\([^)]*\)|\.\.\.|\w+", side.replace("…", "...")):
        names = re.findall(r"\.\.\.|\w+", text)
        found.append(tuple("(...)" if name == "..." and text[0] == "(" else name for name in names if name != "1"))
    return found


def _numbered(groups: Sequence[Group]) -> list[Group]:
    """`(h 2) (w 2)`: each 2 is an axis of its own."""
    return [
        tuple(f"{name}@{i}.{j}" if name.isdigit() else name for j, name in enumerate(group))
        for i, group in enumerate(groups)
    ]


def _spelled(group: Group, axes: Axes) -> Group:
    return tuple(name for item in group for name in (axes.ellipsis if item in ("...", "(...)") else (item,)))


def _length(name: str, lengths: Lengths) -> Size:
    number = name.partition("@")[0]
    return Size.of(int(number)) if number.isdigit() else lengths.get(name, UNKNOWN)


def _split(tensor: Layout, groups: Sequence[Group], lengths: Lengths) -> Axes | None:
    at = groups.index(("...",)) if ("...",) in groups else None
    if at is None:
        layout = tensor.of_rank(len(groups))
        spelled = list(groups) if layout.rank == len(groups) else None
    else:
        layout = tensor.opened(at, len(groups) - at - 1)
        hidden = len(layout.dims) - len(groups) + 1
        is_behind = layout.pack_at is None or at <= layout.pack_at < at + hidden
        dots = [(f".{i}",) for i in range(hidden)]
        spelled = [*groups[:at], *dots, *groups[at + 1 :]] if is_behind and hidden >= 0 else None
    if spelled is None:
        return None
    dims: list[Dim] = []
    for group, dim in zip(spelled, layout.dims, strict=True):
        parts = _parts(group, dim, lengths)
        if parts is None:
            return None
        dims += parts
    names = tuple(name for group in spelled for name in group)
    if len(set(names)) != len(names):
        return None
    found = Layout(tuple(dims))
    ellipsis = tuple(name for name in names if name[0] == ".")
    return Axes(names, restrided(found) if tensor.is_contiguous else found, ellipsis)


def _parts(group: Group, dim: Dim, lengths: Lengths) -> list[Dim] | None:
    """One dim split into axes, of which at most one has no length given."""
    if len(group) == 1:
        return [dim]
    if not group:
        return []
    sizes = [_length(name, lengths) for name in group]
    open_at = [i for i, size in enumerate(sizes) if size.terms is None]
    if len(open_at) > 1:
        return None
    if open_at:
        sizes[open_at[0]] = quotient(dim.size, product(size for size in sizes if size.terms is not None))
    stride, found = dim.stride, list[Dim]()
    for size in reversed(sizes):
        found.append(Dim(size, stride))
        stride = stride * size
    return found[::-1]


def _merged(
    full: Layout, wanted: Sequence[str], groups: Sequence[Group], written: Sequence[Group], world: World
) -> Layout | None:
    if all(spelled == ("...",) or (len(spelled) == 1 and spelled != ("(...)",)) for spelled in written):
        return full
    items: list[Size | Pack] = []
    for group, spelled in zip(groups, written, strict=True):
        dims = [full.dims[wanted.index(name)] for name in group]
        if spelled == ("...",):
            items += [dim.pack or dim.size for dim in dims]
        else:
            items.append(product(dim.size for dim in dims))
    return reshaped(full, Target(tuple(items)), world)


def _with_axes(function: Callable[..., Outcome]) -> Callable[..., Outcome]:
    """Tell the keywords that `**lengths` takes."""
    signature = inspect.signature(function)
    kept = [p for p in signature.parameters.values() if p.kind is not inspect.Parameter.VAR_KEYWORD]
    axes = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=UNKNOWN, annotation="Extent") for name in AXES
    ]
    function.__signature__ = signature.replace(parameters=[*kept, *axes])  # type: ignore[attr-defined]  # Python's own
    return function


@op(
    "einops.rearrange",
    alias=Alias.MAYBE,
    examples=(
        "einops.rearrange(x, 'b n d -> b d n')",
        "einops.rearrange(image, 'b c h w -> b (h w) c')",
        "einops.rearrange(image, 'b c h w -> b c (h w)')",
        "einops.rearrange(image, 'b c h w -> b h w c')",
        "einops.rearrange(image, 'b c (h p1) (w p2) -> b (h w) (p1 p2 c)', p1=2, p2=2)",
        "einops.rearrange(image, 'b (g c) h w -> (b g) c h w', g=image.shape[1])",
        "einops.rearrange(image, 'b (g c) h w -> b g c h w', c=1)",
        "einops.rearrange(x, 'b n d -> (b n) d')",
        "einops.rearrange(x, '... d -> d ...')",
        "einops.rearrange(x, 'b ... -> b (...)')",
        "einops.rearrange(image, 'b ... w -> b w ...')",
        "einops.rearrange(x, 'b n d -> b 1 n d')",
        "einops.rearrange(x.transpose(1, 2), 'b d n -> b (n d)')",
        "einops.rearrange(x.transpose(1, 2), 'b d n -> b (d n)')",
        "einops.rearrange(x.new_ones(2, 3, 1), 'b n 1 -> n b')",
    ),
)
@_with_axes
def rearrange(tensor: Layout, world: World, pattern: Text, **lengths: Size) -> Layout | None:
    return transformed(tensor, pattern, lengths, world)


@op(
    "einops.repeat",
    alias=Alias.MAYBE,
    examples=(
        "einops.repeat(x, 'b n d -> b r n d', r=3)",
        "einops.repeat(x, 'b n d -> b n d 3')",
        "einops.repeat(m.new_ones(3, 4), 'h w -> (h 2) (w 2)')",
        "einops.repeat(x, 'b n d -> b n (d r)', r=1)",
    ),
)
@_with_axes
def repeat(tensor: Layout, world: World, pattern: Text, **lengths: Size) -> Layout | None:
    return transformed(tensor, pattern, lengths, world)


@op(
    "einops.reduce",
    examples=(
        "einops.reduce(image, 'b c h w -> b c', 'mean')",
        "einops.reduce(image, 'b c (h 2) (w 2) -> b c h w', 'max')",
        "einops.reduce(image, 'b c (h p) w -> w b c h', 'sum', p=2)",
        "einops.reduce(x, 'b n d -> b 1 d', 'mean')",
    ),
)
@_with_axes
def reduce(tensor: Layout, world: World, pattern: Text, reduction: Text = None, **lengths: Size) -> Layout | None:
    return transformed(tensor, pattern, lengths, world)


@op(
    "einops.layers.torch.Rearrange",
    alias=Alias.MAYBE,
    examples=(
        "einops.layers.torch.Rearrange('b c h w -> b (h w) c')(image)",
        "einops.layers.torch.Rearrange('b (h d) c w -> b h d (c w)', d=1)(image)",
    ),
)
@_with_axes
def rearrange_module(tensor: Layout, world: World, *, pattern: Text, **lengths: Size) -> Layout | None:
    return transformed(tensor, pattern, lengths, world)


@op("einops.layers.torch.Reduce", examples=("einops.layers.torch.Reduce('b c h w -> b c', 'mean')(image)",))
@_with_axes
def reduce_module(
    tensor: Layout, world: World, *, pattern: Text, reduction: Text = None, **lengths: Size
) -> Layout | None:
    return transformed(tensor, pattern, lengths, world)
