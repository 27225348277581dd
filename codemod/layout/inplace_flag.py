"""Calls that write to their input because `inplace` says so, and return it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from codemod.layout.value import Constant, Module, Value

_POSITIONS = {
    "relu": 1, "relu6": 1, "selu": 1, "silu": 1, "mish": 1, "hardswish": 1, "hardsigmoid": 1, "elu": 2, "celu": 2,
    "leaky_relu": 2, "hardtanh": 3, "threshold": 3, "dropout": 3, "dropout1d": 3, "dropout2d": 3, "dropout3d": 3,
    "alpha_dropout": 3, "feature_alpha_dropout": 3, "rrelu": 4,
}  # fmt: skip
"""Of `inplace` among the arguments of torch.nn.functional, the input included."""
_MODULES = {name.replace("_", ""): position - 1 for name, position in _POSITIONS.items()}
_MODULES |= {name: 1 for name in _MODULES if name.endswith(("dropout", "1d", "2d", "3d"))} | {"rrelu": 2}
"""Of `inplace` among the arguments of a module's constructor, which takes no input and not whether it is training."""


def writes_input(name: str, positional: Sequence[Value], keywords: Mapping[str, Value]) -> bool:
    """May `F.relu(x, inplace)` write to `x`?"""
    return name.startswith("torch.nn.functional.") and _is_set(_POSITIONS, name, positional, keywords)


def module_writes_input(module: Module) -> bool:
    return _is_set(_MODULES, module.name.lower(), module.positional, dict(module.keywords))


def _is_set(
    positions: Mapping[str, int], name: str, positional: Sequence[Value], keywords: Mapping[str, Value]
) -> bool:
    position = positions.get(name.rpartition(".")[2])
    if position is None:
        return False
    given = keywords.get("inplace", positional[position] if len(positional) > position else None)
    return given is not None and not (isinstance(given, Constant) and not given.value)
