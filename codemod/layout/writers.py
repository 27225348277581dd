"""Functions and modules that write to their arguments, by what they are for or because `inplace` says so."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from codemod.layout.value import Constant, Module, Value

_COLLECTIVES = frozenset(
    {
        "all_gather", "all_gather_coalesced", "all_gather_into_tensor", "all_reduce", "all_reduce_coalesced",
        "all_to_all", "all_to_all_single", "broadcast", "gather", "irecv", "recv", "reduce", "reduce_scatter",
        "reduce_scatter_tensor", "scatter",
    }
)  # fmt: skip
"""Functions of torch.distributed that receive into a tensor, or a list of them."""
_OF_NUMPY = frozenset({"copyto", "fill_diagonal", "place", "put", "put_along_axis", "putmask"})
_OPERATORS = frozenset(
    {
        "delitem", "iadd", "iand", "ifloordiv", "ilshift", "imatmul", "imod", "imul", "ior", "ipow", "irshift", "isub",
        "itruediv", "ixor", "setitem",
    }
)  # fmt: skip
_POSITIONS = {
    "relu": 1, "relu6": 1, "selu": 1, "silu": 1, "mish": 1, "hardswish": 1, "hardsigmoid": 1, "elu": 2, "celu": 2,
    "leaky_relu": 2, "hardtanh": 3, "threshold": 3, "dropout": 3, "dropout1d": 3, "dropout2d": 3, "dropout3d": 3,
    "alpha_dropout": 3, "feature_alpha_dropout": 3, "rrelu": 4,
}  # fmt: skip
"""Of `inplace` among the arguments of torch.nn.functional, the input included."""
_MODULES = {name.replace("_", ""): position - 1 for name, position in _POSITIONS.items()}
_MODULES |= {name: 1 for name in _MODULES if name.endswith(("dropout", "1d", "2d", "3d"))} | {"rrelu": 2}
"""Of `inplace` among the arguments of a module's constructor, which takes no input and not whether it is training."""


def written_arguments(name: str, positional: Sequence[Value], keywords: Mapping[str, Value]) -> list[Value]:
    """What a function writes to, or an optimizer will."""
    module, _, last = name.rpartition(".")
    if module in ("torch.distributed", "torch.distributed.distributed_c10d") and last in _COLLECTIVES:
        return [*positional, *keywords.values()]
    if module.startswith("torch.optim") and last[:1].isupper():
        return [*positional[:1], *(keywords[k] for k in ("params",) if k in keywords)]
    is_writer = (last.endswith("_") and not last.endswith("__")) or (module == "numpy" and last in _OF_NUMPY)
    return list(positional[:1]) if is_writer or (module == "operator" and last in _OPERATORS) else []


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
