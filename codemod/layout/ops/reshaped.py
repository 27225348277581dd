"""What reshape gives: a view where the strides allow one, else a contiguous copy."""

from __future__ import annotations

from dataclasses import replace

from codemod.layout.layout import Dim, Layout, World, anonymous, restrided, stride_atom
from codemod.layout.origin import Origin, OriginKind
from codemod.layout.size import UNKNOWN
from codemod.layout.viewable import Legality, Target, judge, viewed

_SIZE_ONE = Origin(OriginKind.SIZE_ONE, "a reshape that copies, but is a view where a dim has size 1")


def reshaped(input: Layout, target: Target | None, world: World) -> Layout | None:
    """The result for a target that fits; None where nothing is known of it."""
    if target is None:
        return anonymous() if input.is_contiguous else None
    legality = judge(input, target).legality
    if legality is Legality.LEGAL:
        return viewed(input, target)
    copy = viewed(restrided(input), target)
    if copy is None:
        return None
    if legality is Legality.MAYBE:
        return _open(copy, input.origins, is_named=False)
    is_certain = world is World.DEFAULT or all(size.constant is not None for size in input.sizes)
    return copy if is_certain else _open(copy, (_SIZE_ONE,), is_named=True)


def _open(layout: Layout, origins: tuple[Origin, ...], *, is_named: bool) -> Layout:
    return Layout(
        tuple(
            Dim(
                dim.size,
                stride_atom("", i, origins) if is_named else UNKNOWN,
                replace(dim.pack, merged=False, origins=origins) if dim.pack else None,
            )
            for i, dim in enumerate(layout.dims)
        )
    )
