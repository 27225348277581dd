"""What a file says of the batches that it runs: its data loaders, the constants it slices by, the dims it exports."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemod.layout.program import Program, Routine, dotted
from codemod.layout.record import record

_DIM = ("torch.export.Dim", "torch.export.dims", "torch.export.dynamic_shapes.Dim", "torch.export.dynamic_shapes.dims")
_PACKAGING = "aoti_compile_and_package"
_CHECK = "AOTI_RUNTIME_CHECK_INPUTS"
_MAKERS = frozenset({"rand", "randn", "zeros", "ones", "empty", "full", "randint"})


@record(frozen=True, slots=True)
class Loader:
    """Something that hands out batches of this size, the last of which may be shorter."""

    key: str
    """The constant that it was given; empty for a number."""
    size: int | None
    line: int
    text: str


@record(frozen=True, slots=True)
class DynamicDim:
    """Dim `dim` of a forward's parameter `owner` (`Net.forward.x`), exported as one that varies."""

    owner: str
    dim: int
    sample: int | None
    """Its size in the example input."""
    line: int
    made_by: int
    """Id of the call of `Dim` that made it, or of the `Dim.AUTO` that it is."""
    hint: ast.Attribute | None
    """`Dim.DYNAMIC` or `Dim.AUTO`, where that is not called."""
    function: str
    """Qualified name of the function that exports."""


@record(frozen=True, slots=True)
class Varying:
    loaders: tuple[Loader, ...] = ()
    dims: tuple[DynamicDim, ...] = ()
    has_dim: bool = False
    """The file imports `torch.export.Dim`, by whatever name, or makes one."""
    packages: tuple[int, ...] = ()
    """Lines that make a package of AOTInductor's, which checks no bounds: none where the file has it do so."""


def survey_varying(program: Program) -> Varying:
    """What the calls that make loaders, slice by steps or export tell."""
    loaders = [told for r in program.routines for call in r.suppliers for told in _loaders(call, r, program)]
    dims = [told for r in program.routines for call in r.suppliers for told in _exported(call, r, program)]
    return Varying(
        tuple(sorted(loaders, key=lambda loader: loader.line)),
        tuple(dims),
        bool(dims) or any(path.startswith(_DIM) for path in program.imports.values()),
        tuple(_packaged(program)),
    )


def _packaged(program: Program) -> Iterator[int]:
    lines = [call.lineno for r in program.routines for call in r.suppliers if _is_packaging(call, program)]
    if lines and all(getattr(node, "value", None) != _CHECK for node in ast.walk(program.routines[0].node)):
        yield from lines


def _is_packaging(call: ast.Call, program: Program) -> bool:
    name = program.resolve(dotted(call.func))
    return name.startswith("torch.") and name.endswith(_PACKAGING)


def constant_key(node: ast.expr, routine: Routine, program: Program) -> str:
    """One name for all mentions of one constant: `BATCH`, `Config.batch`, `Net.batch_size`, `f:batch`."""
    name = dotted(node)
    head, dot, rest = name.partition(".")
    if not name:
        return ""
    if head in ("self", "cls") and routine.owner is not None:
        return f"{routine.owner.name}{dot}{rest}"
    default = _default(head, routine)
    if default is not None:
        return f"{dotted(default)}{dot}{rest}" if rest and dotted(default) else f"{routine.name}:{name}"
    if head in local_bindings(routine):
        return f"{routine.name}:{name}"
    if not isinstance(routine.node, ast.Module) and head in _parameters(routine):
        return f"{routine.name}:{name}"
    return name


def constant_of(node: ast.expr | None, routine: Routine, program: Program) -> int | None:
    """The number that an expression is, where the source says so."""
    if isinstance(node, ast.Constant):
        return node.value if type(node.value) is int else None
    if isinstance(node, ast.Name):
        bound = local_bindings(routine).get(node.id) or _default(node.id, routine) or program.constants.get(node.id)
        return bound.value if isinstance(bound, ast.Constant) and type(bound.value) is int else None
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        head = node.value.id
        default = _default(head, routine)
        owner = routine.owner if head in ("self", "cls") else program.classes.get(dotted(default) if default else head)
        return _class_constant(owner, node.attr) if owner else None
    return None


def _class_constant(owner: ast.ClassDef, name: str) -> int | None:
    for statement in owner.body:
        if isinstance(statement, ast.Assign | ast.AnnAssign) and isinstance(statement.value, ast.Constant):
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            if any(isinstance(target, ast.Name) and target.id == name for target in targets):
                return statement.value.value if type(statement.value.value) is int else None
    return None


def local_bindings(routine: Routine) -> dict[str, ast.expr]:
    """Names that the routine binds by one plain assignment; none of the module's own, which others may see."""
    if routine.bindings is None:
        routine.bindings = _read_bindings(routine)
    return routine.bindings


def _read_bindings(routine: Routine) -> dict[str, ast.expr]:
    found: dict[str, list[ast.expr]] = {}
    for node in ast.walk(routine.node) if not isinstance(routine.node, ast.Module) else ():
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            found.setdefault(node.targets[0].id, []).append(node.value)
    return {name: values[0] for name, values in found.items() if len(values) == 1}


def resolved(node: ast.expr | None, routine: Routine, program: Program) -> ast.expr | None:
    """The expression behind a name that is bound once."""
    for _ in range(3):
        if not isinstance(node, ast.Name):
            return node
        node = local_bindings(routine).get(node.id) or program.constants.get(node.id)
    return node


def _parameters(routine: Routine) -> list[str]:
    assert not isinstance(routine.node, ast.Module)
    arguments = routine.node.args
    return [a.arg for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]


def _default(name: str, routine: Routine) -> ast.expr | None:
    if isinstance(routine.node, ast.Module):
        return None
    arguments = routine.node.args
    plain = [*arguments.posonlyargs, *arguments.args]
    pairs = [
        *zip(plain[len(plain) - len(arguments.defaults) :], arguments.defaults, strict=True),
        *zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True),
    ]
    return next((default for argument, default in pairs if argument.arg == name), None)


def _keyword(call: ast.Call, name: str) -> ast.expr | None:
    return next((keyword.value for keyword in call.keywords if keyword.arg == name), None)


def _loaders(call: ast.Call, routine: Routine, program: Program) -> Iterator[Loader]:
    name = program.resolve(dotted(call.func)) or (call.func.attr if isinstance(call.func, ast.Attribute) else "")
    last = name.rpartition(".")[2]
    size, text = None, ""
    if last == "DataLoader":
        size, text = _keyword(call, "batch_size") or (call.args[1] if len(call.args) > 1 else None), "a DataLoader"
        drop = _keyword(call, "drop_last")
        if drop is not None and not (isinstance(drop, ast.Constant) and drop.value is False):
            return
    elif last == "split" and len(call.args) == (2 if name == "torch.split" else 1) and not call.keywords:
        size, text = _named(call.args[-1]), "`split`"
    elif name == "range" and len(call.args) == 3:
        size, text = _named(call.args[2]), "a loop's step"
    if size is not None:
        key = constant_key(size, routine, program)
        value = constant_of(size, routine, program)
        if key or value is not None:
            yield Loader(key, value, call.lineno, f"{text} hands out batches of `{ast.unparse(size)}`")


def _named(node: ast.expr) -> ast.expr | None:
    """A bare number may as well cut features."""
    return node if isinstance(node, ast.Name | ast.Attribute) else None


def _exported(call: ast.Call, routine: Routine, program: Program) -> Iterator[DynamicDim]:
    """The dims that `torch.export.export(model, (x,), dynamic_shapes={"x": {0: n}})` lets vary."""
    name = program.resolve(dotted(call.func))
    if not name.startswith("torch.") or name.rpartition(".")[2] not in ("export", "export_for_training"):
        return
    model = _class_of(call.args[0] if call.args else None, routine, program)
    forward = program.methods(model).get("forward") if model is not None else None
    if model is None or forward is None:
        return
    parameters = [argument.arg for argument in forward.args.args[1:]]
    samples = resolved(call.args[1] if len(call.args) > 1 else _keyword(call, "args"), routine, program)
    shapes = resolved(_keyword(call, "dynamic_shapes"), routine, program)
    for parameter, spec in _entries(shapes, parameters):
        for dim, made in _dims(resolved(spec, routine, program), routine, program):
            sample = None
            if isinstance(samples, ast.Tuple) and parameters.index(parameter) < len(samples.elts):
                sample = _size(samples.elts[parameters.index(parameter)], dim, routine, program)
            hint = made if isinstance(made, ast.Attribute) else None
            owner = f"{model.name}.forward.{parameter}"
            yield DynamicDim(owner, dim, sample, call.lineno, id(made), hint, routine.name)


def _class_of(node: ast.expr | None, routine: Routine, program: Program) -> ast.ClassDef | None:
    """The class of `Net()`, `Net().eval()`, or of a name bound to that."""
    node = resolved(node, routine, program)
    while isinstance(node, ast.Call):
        if isinstance(node.func, ast.Attribute):
            node = resolved(node.func.value, routine, program)
        else:
            return program.classes.get(dotted(node.func))
    return None


def _entries(shapes: ast.expr | None, parameters: list[str]) -> Iterator[tuple[str, ast.expr]]:
    if isinstance(shapes, ast.Dict):
        for key, value in zip(shapes.keys, shapes.values, strict=True):
            if isinstance(key, ast.Constant) and key.value in parameters:
                yield str(key.value), value
    elif isinstance(shapes, ast.Tuple | ast.List):
        yield from zip(parameters, shapes.elts, strict=False)


def _dims(spec: ast.expr | None, routine: Routine, program: Program) -> Iterator[tuple[int, ast.expr]]:
    pairs: list[tuple[int, ast.expr]] = []
    if isinstance(spec, ast.Dict):
        pairs = [
            (key.value, value)
            for key, value in zip(spec.keys, spec.values, strict=True)
            if isinstance(key, ast.Constant) and type(key.value) is int
        ]
    elif isinstance(spec, ast.Tuple | ast.List):
        pairs = list(enumerate(spec.elts))
    for dim, node in pairs:
        made = resolved(node, routine, program)
        name = program.resolve(dotted(made.func if isinstance(made, ast.Call) else made)) if made else ""
        if made is not None and name.startswith(_DIM) and not name.endswith("STATIC"):
            yield dim, made


def _size(node: ast.expr, dim: int, routine: Routine, program: Program) -> int | None:
    """Size `dim` of an example input such as `torch.rand(32, 3, 4)`."""
    made = resolved(node, routine, program)
    if not isinstance(made, ast.Call) or dotted(made.func).rpartition(".")[2] not in _MAKERS:
        return None
    sizes = list(made.args)
    while sizes and isinstance(sizes[0], ast.Constant) and dotted(made.func).endswith("randint") and len(sizes) > 1:
        sizes.pop(0)
    if sizes and isinstance(sizes[0], ast.Tuple | ast.List):
        sizes = list(sizes[0].elts)
    return constant_of(sizes[dim], routine, program) if dim < len(sizes) else None
