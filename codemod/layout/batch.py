"""Where the number of matrices of a bmm comes from, and whether it can grow large."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from codemod.finding import Reason
from codemod.layout.chunk_loop import chunk_loop
from codemod.layout.op_call import Batch, BatchKind, Form, Observation, OpCall
from codemod.layout.program import Program, Routine, dotted
from codemod.layout.size import ONE, ZERO, Answer, Atom, AtomKind, Size
from codemod.layout.value import Foreign, Function, Instance, Module, Tensor, options
from codemod.layout.varying import Varying

GRID_LIMIT = 65_535
"""Blocks in the y and z dims of a CUDA grid: what Inductor's bmm template gives to the batch (pytorch #178617)."""
GRID_ISSUE = 178617
ELEMENT_LIMIT = 2**31 - 1
"""Elements that kernels with 32-bit offsets can tell apart (pytorch #196431)."""

BOUND_BY_DIM = Reason("this file exports with a `Dim`: bound that instead")

_PLACE = re.compile(r"(\d+):(\d+):(\d+)(?:'\d+)?(?:\.\w+)*$")
_OWNERS = re.compile(r"([\w.:'><]+)\[-?\d*:?-?\d*\]")
_FIXED_NAMES = re.compile(r"head|expert|group|^(n_?h|h_?n)$", re.IGNORECASE)
"""Sizes that a model folds into the batch though they do not grow: attention heads above all."""
_SIZE_NAMES = re.compile(
    r"^(b|bs|bsz|n|t|batch|batch_size|frames?|length|time|(seq|src|tgt)_?len\w*|(num|n)_?(frames|tokens|points|windows))$",
    re.IGNORECASE,
)
"""Integer arguments that say how much data there is."""
_COUNTED = re.compile(r"edge|neighbo|nonzero|(^|_)mask$")
"""Arguments with one element for each thing that the data holds."""
_PICKING = re.compile(
    r"edge|neighbo|nonzero|mask|valid|keep|select|visible|pair|hits?$|^(idx|index|indices|src|dst|rows|cols)$"
)
"""Indices that pick as many rows as the data says."""
_ATTENTION = re.compile(r"att|prob|query|key|value|head|score|^[qkv]$")
"""Arguments whose leading dims are batch and heads."""
_SIZED = frozenset(
    {"view", "reshape", "expand", "repeat", "unflatten", "empty", "zeros", "ones", "full", "rand", "randn", "tile"}
)
"""Ops whose result has the sizes that they are told."""
_COUNTS = frozenset({"nonzero", "argwhere", "masked_select", "unique", "unique_consecutive", "nms", "flatnonzero"})


def batch_of(
    call: ast.Call, observations: Sequence[Observation], routine: Routine, program: Program, varying: Varying
) -> Batch:
    """Judged on the function taken by itself, and on calls of this file that bring more."""
    bound = tuple(_bounds(call, routine, program, varying))
    alone = [_observed(o, routine, program) for o in observations if not o.callers]
    called = [_observed(o, routine, program) for o in observations if o.callers]
    seen = alone or called
    if not seen:
        return Batch(BatchKind.UNKNOWN, bound_by=bound)
    sizes = [size for o in observations if (size := elements(o)) is not None]
    told = Batch(
        BatchKind.UNKNOWN,
        is_expanded=any(b.is_expanded for b in seen),
        count=max((b.count for b in (*alone, *called) if b.count is not None), default=None),
        elements=max(sizes, default=None),
        bound_by=bound,
    )
    large = _large(told)
    fixed = next((b for b in seen if b.kind is BatchKind.CONSTANT), None)
    growing = next((b for b in (*seen, *called) if b.kind is BatchKind.GROWING), None)
    if large is not None:
        return replace(told, kind=BatchKind.GROWING, reasons=(large,))
    chosen = fixed or growing or seen[0]
    return replace(told, kind=chosen.kind, reasons=chosen.reasons)


def _large(told: Batch) -> Reason | None:
    """Shown by numbers in the file."""
    if told.count is not None and told.count > GRID_LIMIT:
        return Reason(
            f"a call in this file brings {told.count:,} matrices, more than the {GRID_LIMIT:,} that one launch takes"
        )
    if told.elements is not None and told.elements > ELEMENT_LIMIT and told.count != 1:
        return Reason(f"a call in this file brings {told.elements:,} elements, more than 32-bit offsets can tell apart")
    return None


def elements(observation: Observation) -> int | None:
    """The elements of the largest operand or of the result, where all sizes are numbers."""
    tensors = list(operands(observation))
    sizes = [size.constant for tensor in tensors for size in tensor.default.sizes]
    if len(tensors) < 2 or None in sizes[:6]:
        return None
    b, n, m, _, _, p = (size or 0 for size in sizes[:6])
    return max(b * n * m, b * m * p, b * n * p)


def is_outer_product(observation: Observation) -> bool:
    """Does it multiply single columns by single rows, whose CUDA kernel counts elements in 32 bits?"""
    return any(tensor.default.dims[2].size == ONE for tensor in [*operands(observation)][:1])


def operands(observation: Observation) -> Iterator[Tensor]:
    """The tensors multiplied, as three dims; both alternatives where there are two."""
    matrices = dict(observation.keywords).get("mat2")
    for value in (observation.receiver, *observation.arguments[:1], *((matrices,) if matrices is not None else ())):
        for option, _ in options(value):
            if isinstance(option, Tensor):
                default, free = option.default.of_rank(3), option.any.of_rank(3)
                if default.rank == 3 and free.rank == 3:
                    yield Tensor(default, free)


def _observed(observation: Observation, routine: Routine, program: Program) -> Batch:
    tensors = list(operands(observation))
    firsts = [tensor.default.dims[0] for tensor in tensors]
    judge = _Judge(observation.names, routine, program)
    kinds = [judge.kind_of(tensor) for tensor in tensors]
    counts = [dim.size.constant for dim in firsts if dim.size.constant is not None]
    expanded = any(dim.stride == ZERO and dim.size != ONE for dim in firsts)
    count = max(counts, default=None)
    for wanted in (BatchKind.CONSTANT, BatchKind.GROWING, BatchKind.INPUT):
        for kind, reason in kinds:
            if kind is wanted:
                return Batch(kind, (reason,), expanded, count)
    return Batch(BatchKind.UNKNOWN, (Reason("where the batch comes from"),), expanded, count)


class _Judge:
    """Tells sizes of the data from constants of the model, by whose dims they are."""

    def __init__(self, names: Sequence[tuple[str, Size]], routine: Routine, program: Program) -> None:
        self.names = {size: name for name, size in reversed(names)}
        self.routine, self.program = routine, program

    def kind_of(self, tensor: Tensor) -> tuple[BatchKind, Reason]:
        """By default an operand that is not followed is left out of an op: that alone does not make a batch fixed."""
        told, free = self.kind(tensor.default.dims[0].size), self.kind(tensor.any.dims[0].size)
        return free if told[0] is BatchKind.CONSTANT else told

    def kind(self, size: Size) -> tuple[BatchKind, Reason]:
        if size.terms is None:
            return BatchKind.UNKNOWN, Reason("where the batch comes from")
        if size.constant is not None:
            return BatchKind.CONSTANT, Reason(f"the batch is {size.constant}")
        factors = max(([a for a in monomial if self._is_data(a)] for monomial, _ in size.terms), key=len)
        for atom in factors:
            if text := self._count(atom):
                return BatchKind.GROWING, Reason(text, line=_line(atom))
            if (
                _is_pack(atom)
                and ":" not in (atom.owner or "")
                and not _ATTENTION.search(atom.owner.rpartition(".")[2] if atom.owner else "")
            ):
                return BatchKind.GROWING, Reason(f"the batch is all leading dims of {self.spell(atom)} folded into one")
        if len(factors) > 1:
            sizes = " times ".join(self.spell(atom) for atom in factors)
            return BatchKind.GROWING, Reason(f"the batch is {sizes}: it grows with each of them")
        if factors:
            return BatchKind.INPUT, Reason(f"the batch is {self.spell(factors[0])}, times constants at most")
        if any(self._is_followed(atom) for atom in size.atoms):
            return BatchKind.CONSTANT, Reason(f"the batch is {size}, fixed with the model")
        return BatchKind.UNKNOWN, Reason("where the batch comes from")

    def spell(self, atom: Atom) -> str:
        name = self.names.get(Size.of(atom))
        if name:
            return f"`{name}`"
        if ":" not in (atom.owner or atom):
            owner = atom.owner or atom
            return f"`{owner.rpartition('.')[2]}{atom.removeprefix(owner)}`"
        node = self._node(atom)
        return f"a size of `{_short(node)}`" if node is not None else "a size that an op returns"

    def _is_data(self, atom: Atom) -> bool:
        if _FIXED_NAMES.search(self.names.get(Size.of(atom), "")):
            return False
        if atom.kind is AtomKind.DIM and atom.owner:
            return self._is_data_owner(atom.owner)
        if "#" in atom:
            node = self._node(atom)
            return node is None or _name(node).removeprefix("new_") not in _SIZED
        if _SIZE_NAMES.search(atom.rpartition(".")[2]) and self._is_data_owner(atom):
            return True
        if ")//(" in atom:
            return any(self._is_data_owner(owner) for owner in _OWNERS.findall(atom))
        return False

    def _is_data_owner(self, owner: str) -> bool:
        """An argument of some function of the file, or the result of an op; not a parameter of a module."""
        function, _, _ = owner.rpartition(".")
        if _PLACE.search(owner) or owner.endswith("]"):
            return True
        return any(r.name == function for r in self.program.routines if r.name) and not function.endswith("__init__")

    def _is_followed(self, atom: Atom) -> bool:
        """A parameter or attribute of a module, rather than something of which nothing is known."""
        text = atom.owner or atom
        return text.startswith("self.") or ".weight" in text or "__init__" in text

    def _count(self, atom: Atom) -> str:
        """How the data decides this size: `nonzero`, a mask, edges; empty where it does not."""
        name = (atom.owner or "").rpartition(".")[2]
        if atom.kind is AtomKind.DIM and ":" not in (atom.owner or "") and atom.dim == 0:
            is_message = name in ("x_i", "x_j") and (atom.owner or "").endswith(f".message.{name}")
            if is_message or _COUNTED.search(name):
                return f"the batch is one matrix for each element of `{name}`"
        node = self._node(atom)
        if node is not None and (_is_count(node) or (isinstance(node, ast.Subscript) and self._picks(node.slice))):
            return f"the data decides how many rows `{_short(node)}` has"
        return ""

    def _picks(self, index: ast.expr) -> bool:
        """Is it a mask, or what `nonzero` found?"""
        if isinstance(index, ast.Tuple) and index.elts:
            index = index.elts[0]
        match index:
            case ast.Compare() | ast.UnaryOp(op=ast.Invert()) | ast.BinOp(op=ast.BitAnd() | ast.BitOr()):
                return True
            case ast.Name(id=name):
                return bool(_PICKING.search(name)) or any(_is_mask(value) for value in self._values(name))
            case ast.Attribute(attr=name):
                return bool(_PICKING.search(name))
            case _:
                return _is_mask(index)

    def _values(self, name: str) -> Iterator[ast.expr]:
        """What the function of the call binds the name to."""
        for node in ast.walk(self.routine.node):
            if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == name for t in node.targets):
                yield node.value

    def _node(self, atom: Atom) -> ast.expr | None:
        """The expression whose result has this size."""
        text = atom.owner if atom.kind is AtomKind.DIM and atom.owner else atom.partition("#")[0]
        match = _PLACE.search(text)
        if match is None:
            return None
        line, column, end = (int(group) for group in match.groups())
        return self.program.expression_at(line, column, end)


def _is_pack(atom: Atom) -> bool:
    return atom.kind is AtomKind.DIM and ":" in atom.removeprefix(atom.owner or "")


def _line(atom: Atom) -> int | None:
    match = _PLACE.search((atom.owner if atom.kind is AtomKind.DIM else None) or atom.partition("#")[0])
    return int(match.group(1)) if match else None


def _is_mask(value: ast.expr) -> bool:
    if isinstance(value, ast.Compare):
        return True
    return any(isinstance(node, ast.Call) and _is_count(node) for node in ast.walk(value))


def _is_count(node: ast.expr) -> bool:
    if _name(node) == "where" and isinstance(node, ast.Call):
        return len(node.args) == 1
    return _name(node) in _COUNTS


def _name(node: ast.expr) -> str:
    """Last name of what is called; empty where nothing is."""
    if not isinstance(node, ast.Call):
        return ""
    return node.func.attr if isinstance(node.func, ast.Attribute) else dotted(node.func)


def _short(node: ast.expr) -> str:
    text = ast.unparse(node)
    return text if len(text) <= 40 else f"{text[:25]}...{text[-12:]}"


def _bounds(call: ast.Call, routine: Routine, program: Program, varying: Varying) -> Iterator[Reason]:
    loop = chunk_loop(call, routine.node)
    if loop is not None:
        yield Reason("the loop around it already takes the batch in parts", line=loop)
    if "chunk" in routine.name.lower() and "bmm" in routine.name.lower():
        yield Reason(f"`{routine.name}` is itself what takes a batch in parts")
    if varying.has_dim:
        yield BOUND_BY_DIM
    if _is_scripted(routine, program):
        yield Reason("TorchScript compiles this function, and could not call the helper")


def _is_scripted(routine: Routine, program: Program) -> bool:
    if isinstance(routine.node, ast.FunctionDef | ast.AsyncFunctionDef):
        for decorator in routine.node.decorator_list:
            name = program.resolve(dotted(decorator.func if isinstance(decorator, ast.Call) else decorator))
            if name.startswith("torch.jit.script") or name == "torch.jit.export":
                return True
    return False


def is_torch_bmm(call: OpCall) -> Answer:
    """Is this bmm of tensors, in a form that the helper takes as well?"""
    if not call.observations or any(isinstance(o.receiver, _OTHERS) for o in call.observations):
        return Answer.NO if call.observations else Answer.MAYBE
    names = {keyword.arg for keyword in call.node.keywords}
    most = 1 if call.form is Form.METHOD else 2
    if not names <= {"input", "self", "mat2", "out"} or len(call.node.args) > most:
        return Answer.NO
    if any(isinstance(argument, ast.Starred) for argument in call.node.args):
        return Answer.MAYBE
    if call.form is not Form.METHOD:
        return Answer.YES
    is_certain = all(isinstance(o.receiver, Tensor) and _is_certain(o.receiver) for o in call.observations)
    return Answer.YES if is_certain else Answer.MAYBE


_OTHERS = (Function, Instance, Module, Foreign)


def _is_certain(tensor: Tensor) -> bool:
    """Not just an argument without annotation, whose dims nobody asked for."""
    return tensor.number is None or tensor.default.rank is not None
