"""One activation of a function: where the interpreter stands, and what it writes down."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from codemod.finding import Reason
from codemod.layout.op_call import Observation
from codemod.layout.ops.lift import Place
from codemod.layout.program import Program, dotted
from codemod.layout.relevance import Slice
from codemod.layout.size import Size
from codemod.layout.state import State, Tests
from codemod.layout.value import Class, Condition, Function, Instance, Unknown, Value, forgotten


class Interpreter(Protocol):
    """What the rooms of the interpreter need of each other."""

    def evaluate(self, node: ast.expr, frame: Frame) -> Value: ...

    def call_function(
        self,
        function: Function,
        positional: Sequence[Value],
        keywords: Mapping[str, Value],
        node: ast.expr,
        frame: Frame,
    ) -> Value:
        """The value returned; the calls in the function's body are observed with these arguments."""
        ...

    def attribute(self, of: Instance, name: str, frame: Frame) -> Value | None:
        """What `self.name` is behind `__init__`; None where nothing binds it."""
        ...

    def method(self, of: Class, name: str) -> Function | None:
        """The method, not bound, of the class or of the nearest base that has it."""
        ...

    def overriding(self, of: Class, name: str) -> list[Function]:
        """The methods of that name of subclasses in the same file."""
        ...

    def method_after(self, of: Class, within: int, name: str) -> Function | None:
        """What `super().name` is of an object of the class, in its method with this id."""
        ...

    def torch_module(self, of: Class, within: int) -> str | None:
        """The torch.nn module whose `forward` calls of the object run, or of `super()` in the method with this id."""
        ...

    def is_managed(self, of: Class, name: str) -> bool:
        """Is what is bound to the attribute not what is read there?"""
        ...

    def imported(self, name: str, unknown: Unknown, given: Iterable[Value], frame: Frame) -> Value | None:
        """What the user's own files define under this import path, which is called with the values `given`.

        None where they do not, or are not read so far: then `unknown` stands for what comes of it.
        """
        ...

    def see_missing(self, of: Class, value: Unknown) -> None:
        """The class lacks what the value stands for; a base in another file may have it."""
        ...

    def returned_by(self, callee: Unknown, unknown: Unknown, given: Iterable[Value]) -> Unknown:
        """The value as the result of calling what is not known, maybe not yet."""
        ...

    def look_into(self, function: Function, frame: Frame) -> None:
        """Observe the calls in the body of a nested function or lambda, whoever calls it."""
        ...


@dataclass(slots=True)
class Notebook:
    """What was seen at each call, by the call's id."""

    asked: frozenset[int]
    """The calls whose observations are wanted."""
    with_callers: bool = False
    """Is it wanted what callers pass, or what holds whoever calls?"""
    observations: dict[int, dict[Observation, None]] = field(default_factory=dict)
    writes: dict[int, dict[Reason, None]] = field(default_factory=dict)
    keeps: dict[int, dict[Reason, None]] = field(default_factory=dict)
    temporary: set[int] = field(default_factory=set)
    is_closed: bool = False
    """Only what writes or keeps is still wanted."""
    unreached: int = 0
    """How many branches that the program does not take are being run."""
    read: set[int] = field(default_factory=set)
    """Calls whose result was read through a name or handed on, so that a write to it is not lost."""

    def observe(self, call: ast.Call, observation: Observation) -> None:
        if id(call) in self.asked and not self.is_closed and bool(observation.callers) is self.with_callers:
            self.observations.setdefault(id(call), {})[observation] = None

    def write(self, views: frozenset[int], text: str, line: int) -> None:
        for view in views if not self.unreached else ():
            self.writes.setdefault(view, {})[Reason(text, line=line)] = None

    def keep(self, views: frozenset[int], text: str, line: int) -> None:
        for view in views if not self.unreached else ():
            self.keeps.setdefault(view, {})[Reason(text, line=line)] = None


@dataclass(slots=True)
class Frame:
    """`key` tells this activation's symbols from those of others; `callers` are the calls that led here."""

    program: Program
    notebook: Notebook
    interpreter: Interpreter
    state: State
    key: str
    name: str
    owner: Class | None = None
    callers: tuple[Reason, ...] = ()
    active: tuple[int, ...] = ()
    """Ids of the functions being run, innermost last."""
    base: int = 0
    """How many of them led to the constructor that is read, from which calls are counted anew."""
    breaks: list[State] = field(default_factory=list)
    """States at `break` of the innermost loop."""
    continues: list[State] = field(default_factory=list)
    """States at `continue` of the innermost loop."""
    left: list[State] | None = None
    """States in which an exception may leave the `try` around; None: there is none."""
    arguments: frozenset[str] = frozenset()
    """Names of the parameters."""
    shared: frozenset[str] = frozenset()
    """Names that functions inside this one, or others, bind or change as well."""
    when: frozenset[Condition] = frozenset()
    """The tests under which the callee of the present call is the one that it is taken for."""
    slice: Slice | None = None
    """Which statements need not be run; None: all are."""
    unread: int = 0
    """Id of the call that the present statement is, where nothing reads its result."""
    loops: int = 0
    """How many loops there are around, of which the rounds are not told apart."""
    fresh: set[str] = field(default_factory=set)
    """Names that the present round of the innermost one has bound."""
    round: int = 0
    """Of the innermost loop."""
    returned: list[tuple[Value, frozenset[tuple[str, bool]]]] = field(default_factory=list)
    yielded: set[int] = field(default_factory=set)
    """Sites with whose results what it yields shares storage."""
    summaries: dict[tuple[object, ...], Value] = field(default_factory=dict)
    """Results of calls made before, by function and arguments; shared by all frames of the file."""
    texts: dict[ast.AST, str] = field(default_factory=dict)
    """Source of nodes; shared by all frames of the file."""
    op_texts: dict[ast.AST, str] = field(default_factory=dict)
    """Ops as a reason spells them, by the node; shared by all frames of the file."""
    tests: Tests = field(default_factory=dict)
    """Source of tests and the names in them; shared by all frames of the file."""

    def bind(self, name: str, value: Value) -> None:
        if name in self.shared:
            value = forgotten(value, f"`{name}`, which another function may bind", name=f"{self.key}{name}~")
        self.state.bind(name, value)

    def value(self, node: ast.expr) -> Value:
        return self.interpreter.evaluate(node, self)

    def place(self, node: ast.expr, label: str = "") -> Place:
        key = f"{self.key}{node.lineno}:{node.col_offset}:{node.end_col_offset}"
        key = f"{key}'{self.round}" if self.round else key
        return Place(key, node.end_lineno or node.lineno, node, label, self.op_texts)

    def closure(self, node: ast.expr | ast.stmt) -> tuple[tuple[str, Value], ...]:
        """What a function that is defined here sees of this one whenever it is called: nothing that is bound again
        below, and no attributes, which anybody may bind."""
        last = self.slice.last_bound if self.slice is not None else {}
        end = node.end_lineno or node.lineno
        return tuple(
            (name, value if last.get(name, 0) <= end else forgotten(value, f"`{name}`, bound again below", last[name]))
            for name, value in self.state.names.items()
            if "." not in name
        )

    def condition(self, test: ast.expr, is_true: bool, before: State) -> Condition:
        """The test as a fact about the state `before` it."""
        return before.condition(test, is_true, self.tests, self.is_bound_elsewhere, str(self.round))

    def is_bound_elsewhere(self, name: str) -> bool:
        """May another function bind the attribute `self.on`?"""
        head, _, last = name.rpartition(".")
        return bool(head) and not self.program.binders.get(last, set()) <= set(self.active[-1:])

    def spell(self, node: ast.expr) -> str:
        """The node's source on one line, cut to a length that reads in a message."""
        text = self.texts.get(node)
        if text is None:
            text = self.texts[node] = dotted(node) or ast.unparse(node)
        return text if len(text) <= 60 else f"{text[:30]}...{text[-25:]}"

    def unfollowed(self, node: ast.expr, why: str = "", number: Size | None = None) -> Unknown:
        """What stands there is not known."""
        return Unknown(why or f"what `{self.spell(node)}` is", node.lineno, self.place(node).key, number)
