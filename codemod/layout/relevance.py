"""Which statements of a function bear on the calls that are to be decided: a backward slice, by name.

A statement is idle where nothing that it binds or changes goes into such a call.  The interpreter passes over it, and
so over the calls of the project's own functions inside it.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from codemod.layout.program import REGISTERS, RESHAPERS, FunctionNode, fields_of, first_name

_CHEAP = frozenset({"size", "dim", "ndimension", "numel", "len", "int", "range", "isinstance", "hasattr"})
"""Calls that tell of sizes: a statement of these alone is run, for what it shows and for names to spell sizes with."""

_ASKERS = frozenset({"isinstance", "issubclass", "super"})
"""Calls that call nothing of what they are given."""

_LAMBDA = "<lambda>"

Flow = tuple[set[str], set[str]]
"""What is bound or changed, and what goes into it."""
Taker = tuple[str, set[str]]
"""What is called, `f` of `f.fill(v)`, and the names in the arguments."""


@dataclass(slots=True)
class _Part:
    """What a statement does, those inside it included.  `x.y` is mentioned as `x` and as `x.y`."""

    bound: set[str] = field(default_factory=set)
    touched: set[str] = field(default_factory=set)
    """What it may change in place: `xs` of `xs.append(y)` and of `xs[0] = y`."""
    mentioned: set[str] = field(default_factory=set)
    returned: set[str] = field(default_factory=set)
    """Names in what it returns."""
    called: set[str] = field(default_factory=set)
    """Last names of what it calls."""
    handed: set[str] = field(default_factory=set)
    """Last names of what it hands to what it calls."""
    sites: set[int] = field(default_factory=set)
    """Ids of the sites in it."""
    takers: list[Taker] = field(default_factory=list)
    flows: list[Flow] = field(default_factory=list)
    head: _Part | None = None
    """Of a compound statement, without its blocks."""
    reshapes: bool = False
    """Gives a tensor other strides in place, under whatever names it has."""
    leaves: bool = False
    """Control may leave the function here."""
    breaks: bool = False
    """Control may leave the loop around it here."""

    def add(self, other: _Part) -> None:
        self.bound |= other.bound
        self.touched |= other.touched
        self.mentioned |= other.mentioned
        self.returned |= other.returned
        self.called |= other.called
        self.handed |= other.handed
        self.sites |= other.sites
        self.takers += other.takers
        self.flows += other.flows
        self.reshapes |= other.reshapes
        self.leaves |= other.leaves
        self.breaks |= other.breaks


class Body:
    """What the statements of one function do; read once, sliced for each question."""

    def __init__(
        self, node: FunctionNode | ast.Module, sites: frozenset[int], effective: frozenset[str] = frozenset()
    ) -> None:
        """`effective` are the names of functions that change what they are given."""
        self._sites = sites
        self._effective = effective
        self._sources: dict[str, set[str]] = {}
        """Names that may be the same object, or part of it, by each name that is bound to one."""
        self.inside: dict[int, set[str]] = {}
        """Names mentioned in each site, by the id of the call."""
        self.in_lambdas: set[int] = set()
        """Sites that run where a lambda is called."""
        self.last_bound: dict[str, int] = {}
        """Line of the last binding of each name."""
        self.parts: dict[int, _Part] = {}
        self.statements: Sequence[ast.stmt] = [ast.Return(node.body)] if isinstance(node, ast.Lambda) else node.body
        self.whole = _Part()
        for statement in self.statements:
            self.whole.add(self._statement(statement))
        for part in self.parts.values() if self._sources else ():
            part.touched |= self._aliases(part.touched)
        self._held = {name for part in self.parts.values() if part.sites for name in part.bound}
        self._held |= self._aliases(self._held)

    def takers(self, part: _Part) -> set[str]:
        """What is called with a site's result, which it may write to."""
        return {taker for taker, given in part.takers if not self._held.isdisjoint(given)}

    def binds(self, name: str) -> bool:
        """Does anything in it bind what has this name, or change it?"""
        return name in self.whole.bound or name in self.whole.touched

    def _aliases(self, names: set[str]) -> set[str]:
        """What else may hold the object: that which a name is bound to, and other names bound to that."""
        found: set[str] = set()
        queue = [name for name in names if name in self._sources]
        while queue:
            for source in self._sources.get(queue.pop(), ()):
                if source not in found:
                    found.add(source)
                    queue.append(source)
        return found

    def _statement(self, node: ast.stmt) -> _Part:
        part = self.parts[id(node)] = _Part()
        kind = type(node)
        if kind in _SIMPLE:
            self._expressions(node, part)
            part.leaves = kind in _LEAVING
            if kind is ast.Return:
                part.returned = part.mentioned
            elif kind is ast.Expr:
                _see_touched(node.value, part)  # type: ignore[attr-defined]
            elif kind is ast.Assign:
                self._see_bound(node)  # type: ignore[arg-type]
            if not self._effective.isdisjoint(part.called | part.mentioned):
                part.touched |= part.mentioned
        elif kind in _DEFINITIONS:
            self._expressions(node, part)
            part.bound = {node.name}  # type: ignore[attr-defined]
            for site in part.sites:
                self.inside[site] = part.mentioned
        else:
            self._compound(node, part)
            return part
        part.flows.append((part.bound | part.touched, part.mentioned))
        return part

    def _see_bound(self, node: ast.Assign) -> None:
        """`ys = xs`, `ys = xs.contiguous()`: what is done to one may be done to the other, either way."""
        sources = _objects(node.value)
        bound = {name for target in node.targets for name in _objects(target)}
        for one, others in ((bound, sources), (sources, bound)) if sources else ():
            for name in one:
                self._sources.setdefault(name, set()).update(others)

    def _compound(self, node: ast.AST, part: _Part) -> None:
        """The heads of a compound statement are its own; its blocks are read one statement at a time."""
        head = part.head = _Part()
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
        elif isinstance(node, _LOOPS):
            part.breaks = False
        elif isinstance(node, ast.ExceptHandler) and node.name:
            head.bound.add(node.name)
        head.flows.append((head.bound | head.touched, head.mentioned))
        part.add(head)

    def _expressions(self, node: ast.AST, part: _Part) -> None:
        stack: list[tuple[ast.AST, tuple[set[str], ...], tuple[Taker, ...]]] = [(node, (), ())]
        while stack:
            node, sites, takers = stack.pop()
            kind = type(node)
            if kind is ast.Name or kind is ast.Attribute:
                names = _chain(node)
                if names is not None:
                    if type(node.ctx) is ast.Store:  # type: ignore[attr-defined]
                        part.bound.add(names[-1])
                        if len(names) > 1 and names[0] != "self":
                            part.touched.add(names[-2])
                        line = node.lineno  # type: ignore[attr-defined]
                        self.last_bound[names[-1]] = max(line, self.last_bound.get(names[-1], 0))
                        part.mentioned.update(names[:-1])
                        part.reshapes = part.reshapes or names[-1].endswith(".data")
                        continue
                    part.mentioned.update(names)
                    for inside in sites:
                        inside.update(names)
                    for _, given in takers:
                        given.add(names[0])
                    continue
            elif kind is ast.Call:
                name = _last(node.func) or _root(node.func)  # type: ignore[attr-defined]
                part.called.add(name)
                if name not in _ASKERS:
                    part.handed.update(map(_last, node.args))  # type: ignore[attr-defined]
                    part.handed.update(_last(k.value) for k in node.keywords)  # type: ignore[attr-defined]
                if name in RESHAPERS:
                    part.reshapes = True
                    part.touched.add(_root(node))  # type: ignore[arg-type]
                part.touched.update(_root(k.value) for k in node.keywords if k.arg == "out")  # type: ignore[attr-defined]
                if id(node) in self._sites:
                    part.sites.add(id(node))
                    inside = self.inside.setdefault(id(node), set())
                    inside.update(taker for taker, _ in takers)
                    sites = (*sites, inside)
                stack.append((node.func, sites, takers))  # type: ignore[attr-defined]
                takers = (*takers, (first_name(node), set()))
                part.takers.append(takers[-1])
                arguments = (*node.args, *node.keywords)  # type: ignore[attr-defined]
                stack += [(argument, sites, takers) for argument in arguments if type(argument) not in _SILENT]
                continue
            elif kind is ast.Lambda:
                part.mentioned.add(_LAMBDA)
                self.in_lambdas.update(id(inner) for inner in ast.walk(node) if id(inner) in self._sites)
            elif kind is ast.Subscript and type(node.ctx) is not ast.Load:  # type: ignore[attr-defined]
                part.touched.add(_root(node))  # type: ignore[arg-type]
            elif kind is ast.comprehension:
                inner = _Part()
                self._expressions(node.target, inner)  # type: ignore[attr-defined]
                self._expressions(node.iter, inner)  # type: ignore[attr-defined]
                part.flows.append((inner.bound, inner.mentioned))
                part.mentioned |= inner.mentioned
                stack += [(test, sites, takers) for test in (node.iter, *node.ifs)]  # type: ignore[attr-defined]
                continue
            for field_name in fields_of(kind):
                child = getattr(node, field_name)
                if type(child) is list:
                    for item in child:
                        if type(item) not in _SILENT:
                            stack.append((item, sites, takers))
                elif type(child) not in _SILENT:
                    stack.append((child, sites, takers))


class Slice:
    """The statements of a body that bear on some of its sites, on calls of `relevant` names, and on its result.

    The names that are read later are followed backwards, as in liveness analysis; in a loop or a `try`, where control
    may take any way, without order.
    """

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
        self._sites = sites
        self._returns = returns
        if not sites.isdisjoint(body.in_lambdas):
            relevant |= {_LAMBDA}
        self._functions = relevant
        self._relevant = relevant | _derived(body.whole.flows, relevant)
        self._idle: set[int] = set()
        self._unread: set[int] = set()
        self._live: dict[int, set[str]] = {}
        """Names needed in a loop, by its id."""
        self._block(body.statements, set(wanted))

    def _block(self, statements: Sequence[ast.stmt], after: set[str]) -> set[str]:
        """The names needed before it; `after` are those needed behind it."""
        for node in reversed(statements):
            after = self._before(node, after)
        return after

    def _before(self, node: ast.stmt, after: set[str]) -> set[str]:
        part, kind = self._body.parts[id(node)], type(node)
        self._judge(node, part, after)
        if kind in _SIMPLE or kind in _DEFINITIONS:
            return self._before_simple(node, part, after)
        head = part.head or part
        if kind is ast.If:
            before = self._block(node.body, after) | self._block(node.orelse, after)  # type: ignore[attr-defined]
            return before | self._asked(head)
        if kind is ast.With or kind is ast.AsyncWith:
            return _grown(self._block(node.body, after) | self._asked(head), head.flows)  # type: ignore[attr-defined]
        needed = _grown(after | self._asked(part), part.flows)
        self._live[id(node)] = needed
        self._judge_all(node, needed)
        return needed

    def _before_simple(self, node: ast.stmt, part: _Part, after: set[str]) -> set[str]:
        is_read = not (after.isdisjoint(part.bound) and after.isdisjoint(part.touched))
        kind = type(node)
        if kind is ast.Return or kind is ast.Raise:
            after = set(self._wanted)
        elif is_read:
            after = (after - part.bound if kind is ast.Assign else after) | part.mentioned
        if part.takers or self._is_busy(part) or (self._returns and kind is ast.Return):
            after = after | _grown(self._asked(part), part.flows)
        return after

    def _asked(self, part: _Part) -> set[str]:
        """Names that go into what is to be decided in the statement."""
        found = set(part.returned) if self._returns else set()
        if not self._wanted:
            found |= self._body.takers(part)
        for site in self._sites & part.sites:
            found |= self._body.inside[site]
        if self._calls(part):
            found |= part.mentioned
        return found

    def _is_busy(self, part: _Part) -> bool:
        return self._calls(part) or not self._sites.isdisjoint(part.sites)

    def _calls(self, part: _Part) -> bool:
        """Is a relevant function called in it, or handed to what may call it?"""
        return not (self._relevant.isdisjoint(part.called) and self._functions.isdisjoint(part.handed))

    def _judge_all(self, node: ast.AST, needed: set[str]) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.stmt):
                self._judge(child, self._body.parts[id(child)], needed)
            if isinstance(child, ast.stmt | ast.ExceptHandler | ast.match_case) and not isinstance(child, _DEFINITIONS):
                self._judge_all(child, needed)

    def _judge(self, node: ast.stmt, part: _Part, after: set[str]) -> None:
        is_unread = after.isdisjoint(part.bound)
        if is_unread:
            self._unread.add(id(node))
        if (
            is_unread
            and not part.breaks
            and not part.reshapes
            and (bool(self._wanted) or not (part.leaves or part.called <= _CHEAP))
            and after.isdisjoint(part.touched)
            and not self._is_busy(part)
        ):
            self._idle.add(id(node))

    def is_idle(self, node: ast.stmt) -> bool:
        """Nothing in the statement bears on what is to be decided, as long as it writes through no view."""
        return id(node) in self._idle

    def leaves_idly(self, node: ast.Return | ast.Raise) -> bool:
        """As `is_idle`, of a `return` or `raise` whose value nobody asks for."""
        part = self._body.parts.get(id(node))
        is_asked = self._returns and isinstance(node, ast.Return)
        return part is not None and not is_asked and not self._is_busy(part)

    def unread(self, node: ast.stmt) -> int:
        """Id of the call that the statement consists of, where nothing asks for its result; else 0."""
        value = getattr(node, "value", None)
        if not isinstance(value, ast.Call) or (self._returns and isinstance(node, ast.Return)):
            return 0
        return id(value) if id(node) in self._unread else 0

    def carries(self, loop: ast.stmt, names: Collection[str]) -> bool:
        """Does a round leave something to the next, under one of the names bound before the loop?"""
        part, live = self._body.parts.get(id(loop)), self._live.get(id(loop))
        return part is None or live is None or any(name in names for name in live & (part.bound | part.touched))

    def writes(self, name: str) -> bool:
        """May the function change what `name` holds, other than by binding it anew?"""
        whole = self._body.whole
        return name in whole.touched or not whole.called.isdisjoint(_TAKERS)

    @property
    def last_bound(self) -> Mapping[str, int]:
        """Line of the last binding of each name of the function."""
        return self._body.last_bound

    def bound(self, node: ast.stmt) -> set[str]:
        return self._body.parts[id(node)].bound

    def touched(self, node: ast.stmt) -> set[str]:
        """What it may change in place; nothing where it stands in the body of a class."""
        part = self._body.parts.get(id(node))
        return part.touched if part is not None else set()

    def mentioned(self, node: ast.stmt) -> set[str]:
        return self._body.parts[id(node)].mentioned


def _grown(needed: set[str], flows: Sequence[Flow]) -> set[str]:
    """The names that flow into those needed, through any number of statements."""
    size = -1
    while size != len(needed):
        size = len(needed)
        for bound, mentioned in reversed(flows):
            if not needed.isdisjoint(bound):
                needed |= mentioned
    return needed


def _derived(flows: Sequence[Flow], relevant: frozenset[str]) -> set[str]:
    """Names bound to what a relevant name makes: `block` of `block = Block()`, `layer` of `for layer in blocks`."""
    found: set[str] = set()
    relevant = relevant | {f"self.{name}" for name in relevant}
    size = -1
    while size != len(found):
        size = len(found)
        for bound, mentioned in flows:
            if not relevant.isdisjoint(mentioned) or not found.isdisjoint(mentioned):
                found |= {name.rpartition(".")[2] for name in bound}
    return found


_SILENT = frozenset({type(None), str, int, bool, ast.Constant})
"""Nothing in them mentions a name."""
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
_TAKERS = frozenset({"pop", "popitem", "popleft", "setdefault"})
"""Methods that change a container and whose result is used."""
_LEAVING = (ast.Return, ast.Raise, ast.Assert)
_LOOPS = (ast.For, ast.AsyncFor, ast.While)
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


def _objects(node: ast.expr) -> set[str]:
    """Names of what the expression may be, or hold, as it is."""
    match node:
        case ast.Name() | ast.Attribute():
            names = _chain(node) or [""]
            return {names[0]} - {"self", ""}
        case ast.Tuple(elts=items) | ast.List(elts=items):
            return set().union(*map(_objects, items))
        case ast.Dict(values=items):
            return set().union(*map(_objects, items))
        case ast.IfExp(body=one, orelse=other):
            return _objects(one) | _objects(other)
        case ast.BoolOp(values=items):
            return set().union(*map(_objects, items))
        case ast.Subscript(value=inner) | ast.Starred(value=inner) | ast.NamedExpr(value=inner):
            return _objects(inner)
        case ast.Call(func=ast.Attribute(value=inner, attr="contiguous" | "to" | "float" | "type" | "get")):
            return _objects(inner)
        case _:
            return set()


def _root(node: ast.expr) -> str:
    """`self.cache` of `self.cache[0]`; empty where it has no name."""
    while isinstance(node, ast.Subscript | ast.Call):
        node = node.value if isinstance(node, ast.Subscript) else node.func
    return (_chain(node) or [""])[-1]


def _last(node: ast.expr) -> str:
    if isinstance(node, ast.Lambda):
        return _LAMBDA
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
