"""Which statements of a function bear on the calls that are to be decided: a backward slice, by name.

A statement is idle where nothing that it binds or changes goes into such a call.  The interpreter passes over it, and
so over the calls of the project's own functions inside it.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field

from codemod.layout.program import REGISTERS, FunctionNode

_CHEAP = frozenset({"size", "dim", "ndimension", "numel", "len", "int", "range", "isinstance", "hasattr"})
"""Calls that tell of sizes: a statement of these alone is run, for what it shows and for names to spell sizes with."""


@dataclass(slots=True)
class _Part:
    """What a statement does, those inside it included.  `x.y` is mentioned as `x` and as `x.y`."""

    bound: set[str] = field(default_factory=set)
    touched: set[str] = field(default_factory=set)
    """What it may change in place: `xs` of `xs.append(y)` and of `xs[0] = y`."""
    mentioned: set[str] = field(default_factory=set)
    called: set[str] = field(default_factory=set)
    """Last names of what it calls."""
    sites: set[int] = field(default_factory=set)
    """Ids of the sites in it."""
    leaves: bool = False
    """Control may leave the function here."""
    breaks: bool = False
    """Control may leave the loop around it here."""

    def add(self, other: _Part) -> None:
        self.bound |= other.bound
        self.touched |= other.touched
        self.mentioned |= other.mentioned
        self.called |= other.called
        self.sites |= other.sites
        self.leaves |= other.leaves
        self.breaks |= other.breaks


class Body:
    """What the statements of one function do; read once, sliced for each question."""

    def __init__(self, node: FunctionNode | ast.Module, sites: frozenset[int]) -> None:
        self._sites = sites
        self.inside: dict[int, set[str]] = {}
        """Names mentioned in each site, by the id of the call."""
        self.parts: dict[int, _Part] = {}
        self.flows: list[tuple[set[str], set[str]]] = []
        """(bound or touched, mentioned) of each simple statement and of each loop's head."""
        self.returned: set[str] = set()
        statements: Sequence[ast.stmt] = [ast.Return(node.body)] if isinstance(node, ast.Lambda) else node.body
        self.whole = self._block(statements)

    def _block(self, body: Iterable[ast.stmt]) -> _Part:
        whole = _Part()
        for statement in body:
            whole.add(self._statement(statement))
        return whole

    def _statement(self, node: ast.stmt) -> _Part:
        part = _Part()
        kind = type(node)
        if kind in _SIMPLE:
            self._expressions(node, part)
            part.leaves = kind in _LEAVING
            if kind is ast.Return:
                self.returned |= part.mentioned
            elif kind is ast.Expr:
                _see_touched(node.value, part)  # type: ignore[attr-defined]
            self.flows.append((part.bound | part.touched, part.mentioned))
        elif kind in _DEFINITIONS:
            self._expressions(node, part)
            part.bound = {node.name}  # type: ignore[attr-defined]
            for site in part.sites:
                self.inside[site] = part.mentioned
            self.flows.append((part.bound, part.mentioned))
        else:
            self._compound(node, part)
        self.parts[id(node)] = part
        return part

    def _compound(self, node: ast.AST, part: _Part) -> None:
        """The heads of a compound statement are its own; its blocks are read one statement at a time."""
        head = _Part()
        for name in node._fields:
            child = getattr(node, name)
            for item in child if isinstance(child, list) else [child]:
                if isinstance(item, ast.stmt):
                    part.add(self._statement(item))
                elif isinstance(item, ast.ExceptHandler | ast.match_case):
                    self._compound(item, part)
                elif isinstance(item, ast.AST):
                    self._expressions(item, head)
        if isinstance(node, ast.Break | ast.Continue):
            part.breaks = True
        elif isinstance(node, ast.For | ast.AsyncFor | ast.While):
            part.breaks = False
        elif isinstance(node, ast.ExceptHandler) and node.name:
            head.bound.add(node.name)
        part.add(head)
        self.flows.append((head.bound, head.mentioned))

    def _expressions(self, node: ast.AST, part: _Part) -> None:
        stack: list[tuple[ast.AST, tuple[set[str], ...]]] = [(node, ())]
        while stack:
            node, sites = stack.pop()
            kind = type(node)
            if kind is ast.Name or kind is ast.Attribute:
                names = _chain(node)
                if names is not None:
                    if type(node.ctx) is ast.Store:  # type: ignore[attr-defined]
                        part.bound.add(names[-1])
                        part.mentioned.update(names[:-1])
                        continue
                    part.mentioned.update(names)
                    for inside in sites:
                        inside.update(names)
                    continue
            elif kind is ast.Call:
                part.called.add(_last(node.func))  # type: ignore[attr-defined]
                if id(node) in self._sites:
                    part.sites.add(id(node))
                    sites = (*sites, self.inside.setdefault(id(node), set()))
            elif kind is ast.Subscript and type(node.ctx) is not ast.Load:  # type: ignore[attr-defined]
                part.touched.add(_root(node))  # type: ignore[arg-type]
            elif kind is ast.comprehension:
                inner = _Part()
                self._expressions(node.target, inner)  # type: ignore[attr-defined]
                self._expressions(node.iter, inner)  # type: ignore[attr-defined]
                self.flows.append((inner.bound, inner.mentioned))
            stack += [(child, sites) for child in ast.iter_child_nodes(node)]


class Slice:
    """The statements of a body that bear on some of its sites, on calls of `relevant` names, and on its result."""

    def __init__(
        self,
        body: Body,
        sites: frozenset[int] = frozenset(),
        relevant: frozenset[str] = frozenset(),
        *,
        returns: bool = False,
        wanted: frozenset[str] = frozenset(),
    ) -> None:
        """With `wanted`, only what bears on these names."""
        self._body = body
        self._wanted = wanted
        relevant |= _derived(body.flows, relevant)
        needed = set(wanted)
        for site in sites & body.whole.sites:
            needed |= body.inside[site]
        if returns:
            needed |= body.returned
        calling = [part for part in body.parts.values() if not relevant.isdisjoint(part.called)] if relevant else []
        for part in calling:
            needed |= part.mentioned
        self.needed = _grown(needed, body.flows)
        busy = {id(part) for part in calling}
        self._quiet = {
            node for node, part in body.parts.items() if id(part) not in busy and sites.isdisjoint(part.sites)
        }
        self._idle = {node for node in self._quiet if self._is_unneeded(body.parts[node])}
        self.returns = returns

    def _is_unneeded(self, part: _Part) -> bool:
        return (
            not part.breaks
            and (bool(self._wanted) or not (part.leaves or part.called <= _CHEAP))
            and self.needed.isdisjoint(part.bound)
            and self.needed.isdisjoint(part.touched)
        )

    @property
    def is_bound(self) -> bool:
        """Does anything bind or change the names wanted?"""
        whole = self._body.whole
        return not (self._wanted.isdisjoint(whole.bound) and self._wanted.isdisjoint(whole.touched))

    def is_idle(self, node: ast.stmt) -> bool:
        """Nothing in the statement bears on what is to be decided, as long as it writes through no view."""
        return id(node) in self._idle

    def leaves_idly(self, node: ast.Return | ast.Raise) -> bool:
        """As `is_idle`, of a `return` or `raise` whose value nobody asks for."""
        return id(node) in self._quiet and not (self.returns and isinstance(node, ast.Return))

    def unread(self, node: ast.stmt) -> int:
        """Id of the call that the statement consists of, where nothing asks for its result; else 0."""
        value = getattr(node, "value", None)
        part = self._body.parts.get(id(node))
        if part is None or not isinstance(value, ast.Call) or (self.returns and isinstance(node, ast.Return)):
            return 0
        return id(value) if self.needed.isdisjoint(part.bound) else 0

    def carries(self, loop: ast.stmt, names: Collection[str]) -> bool:
        """Does a round leave something to the next, under one of the names bound before the loop?"""
        part = self._body.parts.get(id(loop))
        return part is None or any(name in names for name in self.needed & (part.bound | part.touched))

    def bound(self, node: ast.stmt) -> set[str]:
        return self._body.parts[id(node)].bound

    def mentioned(self, node: ast.stmt) -> set[str]:
        return self._body.parts[id(node)].mentioned


def _grown(needed: set[str], flows: Sequence[tuple[set[str], set[str]]]) -> set[str]:
    """The names that flow into those needed, through any number of statements."""
    size = -1
    while size != len(needed):
        size = len(needed)
        for bound, mentioned in reversed(flows):
            if not needed.isdisjoint(bound):
                needed |= mentioned
    return needed


def _derived(flows: Sequence[tuple[set[str], set[str]]], relevant: frozenset[str]) -> set[str]:
    """Names bound to what a relevant name makes: `block` of `block = Block()`, `layer` of `for layer in blocks`."""
    found: set[str] = set()
    size = -1
    while size != len(found):
        size = len(found)
        for bound, mentioned in flows:
            if not relevant.isdisjoint(mentioned) or not found.isdisjoint(mentioned):
                found |= {name.rpartition(".")[2] for name in bound}
    return found


_SIMPLE = (
    ast.Expr,
    ast.Assign,
    ast.AnnAssign,
    ast.AugAssign,
    ast.Return,
    ast.Raise,
    ast.Assert,
    ast.Delete,
    ast.Import,
    ast.ImportFrom,
)
_LEAVING = (ast.Return, ast.Raise, ast.Assert)
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def _see_touched(node: ast.expr, part: _Part) -> None:
    """`xs.append(y)`, `x.add_(y)`, `init.zeros_(x)`, `torch.add(a, b, out=x)`: used for what they do."""
    if isinstance(node, ast.Call):
        if isinstance(node.func, ast.Attribute):
            part_of = _root(node.func.value)
            if part_of != "self":  # what its methods bind is read where they bind it
                part.touched.add(part_of)
            if node.func.attr in REGISTERS:
                names = [*node.args[:1], *(k.value for k in node.keywords if k.arg == "name")]
                part.touched |= {f"{part_of}.{n.value!s}" for n in names if isinstance(n, ast.Constant)}
        name = _last(node.func)
        if name.endswith("_") and not name.endswith("__") and node.args:
            part.touched.add(_root(node.args[0]))


def _root(node: ast.expr) -> str:
    """`self.cache` of `self.cache[0]`; empty where it has no name."""
    while isinstance(node, ast.Subscript | ast.Call):
        node = node.value if isinstance(node, ast.Subscript) else node.func
    return (_chain(node) or [""])[-1]


def _last(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _chain(node: ast.AST) -> list[str] | None:
    """`self`, `self.cache`, `self.cache.keys` of such an expression; None for any other."""
    parts: list[str] = []
    while type(node) is ast.Attribute:
        parts.append(node.attr)
        node = node.value
    if type(node) is not ast.Name:
        return None
    names = [node.id]
    for part in reversed(parts):
        names.append(f"{names[-1]}.{part}")
    return names
