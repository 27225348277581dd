"""What is known at one point of a function: names, attributes, and the tests that lead there."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cache

from codemod.layout.layout import Layout
from codemod.layout.program import dotted
from codemod.layout.value import (
    Choice,
    Condition,
    Several,
    Tensor,
    Unknown,
    Value,
    choose,
)


@dataclass(slots=True)
class State:
    """Changes while a block is run; `fork` before each branch."""

    names: dict[str, Value] = field(default_factory=dict)
    """Local names, and attributes under their dotted text (`self.cache`)."""
    facts: frozenset[Condition] = frozenset()
    ranks: dict[str, int] = field(default_factory=dict)
    """Ranks that a test or an unpacking has shown, by owner."""
    versions: dict[str, int] = field(default_factory=dict)
    """How often a name was bound again: a test on an older binding says nothing of the newer one."""
    dotted: set[str] = field(default_factory=set)
    """Those of the names that are attributes."""
    owners: set[str] = field(default_factory=set)
    """What they, and those of states that came of this one, are attributes of; shared by all of these."""

    def fork(self, fact: Condition | None = None) -> State:
        facts = self.facts | {fact} if fact else self.facts
        return State(dict(self.names), facts, dict(self.ranks), dict(self.versions), set(self.dotted), self.owners)

    def bind(self, name: str, value: Value) -> None:
        self.versions[name] = self.versions.get(name, 0) + 1
        if name in self.owners:
            for stale in [known for known in self.dotted if known.startswith(name + ".")]:
                self.dotted.discard(stale)
                self.names.pop(stale, None)
        if "." in name:
            self.dotted.add(name)
            self.owners.update(_owners(name))
        self.names[name] = value

    def look_up(self, name: str) -> Value | None:
        value = self.names.get(name)
        if value is None:
            return None
        if isinstance(value, Choice):
            value = self.possible(value)
        return ranked(value, self.ranks) if self.ranks else value

    def possible(self, value: Value) -> Value:
        """The alternatives that the tests on the way here leave."""
        if not isinstance(value, Choice):
            return value
        kept = [
            (v, when) for v, when in value.options if not any((text, not held) in self.facts for text, held in when)
        ]
        found = choose((v, when - self.facts) for v, when in kept) if kept else value
        return replace(found, name=value.name) if value.name and isinstance(found, Choice) else found

    def condition(
        self, test: ast.expr, is_true: bool, texts: Tests, is_changing: Callable[[str], bool], once: str
    ) -> Condition:
        """The test as a fact that later tests of the same text confirm or exclude; `texts` remembers their sources.

        One that may come out otherwise when it is asked again, or holds a name that `is_changing`, is a fact by
        itself, told from others by `once`.
        """
        while isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            test, is_true = test.operand, not is_true
        if isinstance(test, ast.Compare) and len(test.ops) == 1 and type(test.ops[0]) in _OPPOSITES:
            is_true = not is_true
        text, names, is_lasting = _read(test, texts)
        if not is_lasting or any(map(is_changing, names)):
            return (f"{text}{ONCE}{once}:{test.lineno}:{test.col_offset}", is_true)
        versions = [f"{name}={v}" for name in names if (v := self.versions.get(name, 0)) > ("." not in name)]
        return (f"{text}{BEHIND}{','.join(versions)}" if versions else text, is_true)

    def settled(self, condition: Condition, owner: str) -> Condition:
        """A test in the `__init__` that ends here, as one that methods ask again: of the `owner`'s attributes alone."""
        text, _, versions = condition[0].partition(BEHIND)
        is_own = all(name.partition(".")[0] == owner for name in names_in(text))
        latest = {f"{name}={v}" for name, v in self.versions.items()}
        if is_own and latest.issuperset(filter(None, versions.split(","))):
            return (text, condition[1])
        return (f"{text}{ONCE}{owner}", condition[1])


Tests = dict[ast.expr, tuple[str, tuple[str, ...], bool]]
BEHIND = "\0"
"""Stands between the text of a test and what tells it from others of that text."""
ONCE = f"{BEHIND}~"
"""Stands behind the text of a test that may come out otherwise when it is asked again."""

_OPPOSITES: dict[type[ast.cmpop], type[ast.cmpop]] = {ast.IsNot: ast.Is, ast.NotEq: ast.Eq, ast.NotIn: ast.In}


def _read(test: ast.expr, texts: Tests) -> tuple[str, tuple[str, ...], bool]:
    """The test's source, `is not` told as `is`, the names in it, and whether asking again gives the same."""
    found = texts.get(test)
    if found is None:
        positive = test
        if isinstance(test, ast.Compare) and len(test.ops) == 1 and type(test.ops[0]) in _OPPOSITES:
            positive = ast.Compare(test.left, [_OPPOSITES[type(test.ops[0])]()], test.comparators)
        nodes = list(ast.walk(test))
        names = tuple(_dotted_names(nodes))
        found = texts[test] = (_spell(positive), names, not any(map(_may_change, nodes)))
    return found


@cache
def names_in(test: str) -> frozenset[str]:
    """Those of a test's text: `self` and `self.fused` of `not self.fused`."""
    return frozenset(_dotted_names(ast.walk(ast.parse(test, mode="eval"))))


def _dotted_names(nodes: Iterable[ast.AST]) -> Iterator[str]:
    return filter(None, (dotted(node) for node in nodes if isinstance(node, ast.Name | ast.Attribute)))


def _may_change(node: ast.AST) -> bool:
    if isinstance(node, ast.Call):
        name = node.func.attr if isinstance(node.func, ast.Attribute) else dotted(node.func)
        return name not in _LASTING
    return isinstance(node, ast.NamedExpr | ast.Await | ast.Yield | ast.YieldFrom)


_LASTING = frozenset(
    {
        "all", "any", "bool", "callable", "dim", "endswith", "float", "getattr", "hasattr", "int", "is_available",
        "is_compiling", "is_complex", "is_contiguous", "is_cuda", "is_floating_point", "is_grad_enabled",
        "is_scripting", "is_tensor", "is_tracing", "isinstance", "issubclass", "keys", "len", "lower", "max", "min",
        "ndimension", "numel", "size", "startswith", "str", "tuple", "type", "upper", "values",
    }
)  # fmt: skip
"""Calls that give the same as long as what they are given is the same."""


def _spell(test: ast.expr) -> str:
    """As `ast.unparse`, which takes long for the tests that are most frequent: `x`, `self.fused`, `x is None`."""
    match test:
        case ast.Compare(left=left, ops=[ast.Is()], comparators=[ast.Constant(value=None)]) if name := dotted(left):
            return f"{name} is None"
        case _:
            return dotted(test) or ast.unparse(test)


@cache
def _owners(name: str) -> frozenset[str]:
    """`self` and `self.cache` of `self.cache.keys`."""
    return frozenset(name[:i] for i, letter in enumerate(name) if letter == ".")


def join(branches: Iterable[tuple[State, Condition | None]]) -> State | None:
    """The state behind branches that come together; None where none of them does."""
    alive = list(branches)
    if not alive:
        return None
    if len(alive) == 1:
        return alive[0][0]
    states = [state for state, _ in alive]
    first, *others = states
    names = dict(first.names)
    differing: list[str] = []
    for state in others:
        known = state.names
        differing += [name for name, value in names.items() if known.get(name) is not value]
        differing += [name for name in known if name not in names]
    for name in dict.fromkeys(differing):
        names[name] = _joined(name, alive)
    versions = dict(first.versions)
    for state in others:
        for name, version in state.versions.items():
            if version > versions.get(name, 0):
                versions[name] = version
    return State(
        names,
        frozenset.intersection(*(state.facts for state in states)),
        {owner: rank for owner, rank in first.ranks.items() if all(s.ranks.get(owner) == rank for s in others)},
        versions,
        set().union(*(state.dotted for state in states)),
        first.owners,
    )


def _joined(name: str, branches: list[tuple[State, Condition | None]]) -> Value:
    return choose((_or_unset(name, state), _given(fact)) for state, fact in branches)


def _or_unset(name: str, state: State) -> Value:
    value = state.names.get(name)
    return value if value is not None else Unknown(f"`{name}`, not set on every path", name=name)


def _given(fact: Condition | None) -> frozenset[Condition]:
    return frozenset((fact,)) if fact else frozenset()


def ranked(value: Value, ranks: dict[str, int]) -> Value:
    """The value with the packs opened of tensors whose rank has been shown since."""
    match value:
        case Tensor():
            default, free = _ranked(value.default, ranks), _ranked(value.any, ranks)
            if default is value.default and free is value.any:
                return value
            return replace(value, default=default, any=free)
        case Several(items):
            found = tuple(ranked(item, ranks) for item in items)
            is_same = all(map(operator.is_, found, items))
            return value if is_same else Several(found)
        case _:
            return value


def _ranked(layout: Layout, ranks: dict[str, int]) -> Layout:
    at = layout.pack_at
    pack = layout.dims[at].pack if at is not None else None
    if pack is None or pack.owner not in ranks or at is None:
        return layout
    hidden = ranks[pack.owner] - pack.front - pack.back
    return layout.of_rank(len(layout.dims) - 1 + hidden) if hidden >= 0 else layout
