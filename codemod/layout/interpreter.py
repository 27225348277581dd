"""Runs the functions of one file on abstract values, statement by statement, and observes the calls on the way."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Sequence
from collections.abc import Mapping as Namespace
from dataclasses import replace

from codemod.finding import Reason
from codemod.layout.decorators import is_transparent
from codemod.layout.expressions import (
    UNROLLED_AT_MOST,
    bind_element,
    evaluate,
    global_value,
    may_change,
    operate,
    taken_apart,
)
from codemod.layout.frame import Frame, Notebook
from codemod.layout.members import Members
from codemod.layout.narrow import narrowed
from codemod.layout.parameters import bind_arguments, opaque_arguments
from codemod.layout.program import TRIES, FunctionNode, Program, Routine, dotted
from codemod.layout.project import Project
from codemod.layout.relevance import Body, Slice
from codemod.layout.state import State, Tests, join
from codemod.layout.targets import assign, forget, forget_holders, show_rank
from codemod.layout.value import (
    Choice,
    Class,
    Condition,
    Constant,
    Foreign,
    Function,
    Instance,
    Leading,
    Mapping,
    Method,
    Partial,
    Qualified,
    Repeated,
    Several,
    Tensor,
    Unknown,
    Value,
    choose,
    forgotten,
    is_alike,
    may_be,
    options,
    parts,
    views_of,
    written_views,
)

DEPTH = 1
"""Calls inside calls are followed this far."""
STEPS = 60_000
"""Statements run for one file before calls are no longer followed."""
WRITERS_STEPS = 5_000
"""Statements run for what may write to the results of views that are refused: at least so many."""
CALLERS_STEPS = 200
"""Statements run for what callers pass: at least so many, and half as many as the functions themselves took."""
ROUNDS = 2
"""Of a loop's body: the second sees what the first left behind."""
ROUNDS_AT_MOST = 4
"""While a round leaves what none before it did; what the last is still given anew is not followed."""

SHORT = 5
"""Statements of a function that is followed one call deeper."""
ACTIVE_AT_MOST = 6
"""Functions that are run one inside the other, constructors included."""
WRITERS_DEPTH = 12
"""Calls inside calls are followed this far for what they write to."""
_PASSED_OVER = Unknown("a statement that bears on no site")


class FileInterpreter:
    """Holds what all frames of a file share."""

    def __init__(self, program: Program, project: Project) -> None:
        self.program = program
        self._project = project
        self.notebook = Notebook(program.sites)
        self.steps = 0
        self._relevant: frozenset[str] = frozenset()
        self._refused: frozenset[int] = frozenset()
        """The sites of which it is asked whether anything writes to their results."""
        self._for_sizes: frozenset[int] = frozenset()
        self.is_deep = False
        self._limit = STEPS
        self._depth = DEPTH
        self.returned: dict[int, set[int]] = {}
        """Ids of the sites with whose results the result of a function shares storage, by the id of its node."""
        self.skipped: dict[str, Unknown] = {}
        """What stands for the results of calls not looked into so far, by name."""
        self.handed: set[int] = set()
        """Ids of the sites whose result is handed to what is not looked into so far."""
        self._members = Members(self)
        self._summaries: dict[tuple[object, ...], Value] = {}
        self._bodies: dict[int, Body] = {}
        self._slices: dict[tuple[int, bool, bool, frozenset[str]], Slice] = {}
        self._texts: dict[ast.AST, str] = {}
        self._op_texts: dict[ast.AST, str] = {}
        self._tests: Tests = {}
        self._plain: dict[int, bool] = {}

    def dissolve(self) -> None:
        """Part what holds each other, so that all goes with its last reference and not when the collector comes by."""
        del self._members
        self.program.dissolve()

    def evaluate(self, node: ast.expr, frame: Frame) -> Value:
        return evaluate(node, frame)

    def follow_calls(self, sites: frozenset[int]) -> None:
        """From now on look into the calls that bear on these sites, and forget what was seen of them."""
        self._ask(sites, frozenset())
        for site in sites:
            self.notebook.observations.pop(site, None)

    def observe_calls(
        self, sites: frozenset[int], relevant: frozenset[str], for_sizes: frozenset[int], depth: int
    ) -> None:
        """From now on look into the calls of functions of these names, for what they bring to these sites.

        To all others than the functions `for_sizes` only strided arguments bring anything.
        """
        self._ask(sites, relevant)
        self._for_sizes = for_sizes
        self._depth = depth
        self._limit = min(STEPS, self.steps + max(self.steps // 2, CALLERS_STEPS))
        self.notebook.with_callers = True

    def find_writers(self, sites: frozenset[int], relevant: frozenset[str]) -> None:
        """From now on look into all that is handed the results of these sites, however deep, for what it writes to."""
        self._ask(sites, relevant)
        self._refused = sites
        self._limit = self.steps + max(self.steps, WRITERS_STEPS)
        self.notebook.with_callers = False
        self.notebook.is_closed = True

    def _ask(self, sites: frozenset[int], relevant: frozenset[str]) -> None:
        self.notebook.asked, self._relevant = sites, relevant
        self._slices.clear()
        self._summaries.clear()
        if not self.is_deep:
            self._members = Members(self)  # what was found without looking into other files
        self.is_deep = True

    @property
    def is_spent(self) -> bool:
        """No more calls are followed."""
        return self.steps > self._limit

    def run_routine(self, routine: Routine) -> None:
        """A function taken by itself: its callers may pass anything."""
        node = routine.node
        if isinstance(node, ast.Module):
            frame = self.new_frame(State(), "", "", (id(node),))
            frame.shared = frozenset(self.program.shared.get(id(node), ()))
            frame.slice = self._slice(node)
            self.run(node.body, frame)
            return
        owner = Class(routine.owner, routine.owner.name, self.program) if routine.owner else None
        self._run_alone(Function(node, routine.name, self.program), owner)

    def look_into(self, function: Function, frame: Frame) -> None:
        if id(function.node) not in frame.active and len(frame.active) < DEPTH + 2:
            self._run_alone(function, None, function.bound, frame)

    def _run_alone(
        self, function: Function, owner: Class | None, bound: Value | None = None, outer: Frame | None = None
    ) -> None:
        node = function.node
        active = (*(outer.active if outer else ()), id(node))
        name = function.qualified_name
        frame = self.new_frame(State(dict(function.closure)), f"{name}:", name, active, function.program)
        frame.owner = owner
        frame.slice = self._slice(node)
        frame.shared = frozenset(function.program.shared.get(id(node), ()))
        for parameter, value in opaque_arguments(node, name, owner, bound, frame).items():
            frame.bind(parameter, value)
        frame.arguments = frozenset(frame.state.names) - frozenset(dict(function.closure))
        self._run_body(node, frame)
        returned = self.returned.setdefault(id(node), frame.yielded)
        for value, _ in frame.returned:
            returned.update(views_of(value))

    def new_frame(
        self, state: State, key: str, name: str, active: tuple[int, ...], program: Program | None = None
    ) -> Frame:
        return Frame(
            program or self.program,
            self.notebook,
            self,
            state,
            key,
            name,
            active=active,
            summaries=self._summaries,
            texts=self._texts,
            op_texts=self._op_texts,
            tests=self._tests,
        )

    def _run_body(self, node: FunctionNode, frame: Frame) -> None:
        if isinstance(node, ast.Lambda):
            frame.returned.append((evaluate(node.body, frame), frozenset()))
        elif self.run(node.body, frame):
            frame.returned.append((Constant(None), frozenset()))

    def call_function(
        self,
        function: Function,
        positional: Sequence[Value],
        keywords: Namespace[str, Value],
        node: ast.expr,
        frame: Frame,
    ) -> Value:
        given = (*positional, *keywords.values(), *([] if function.bound is None else [function.bound]))
        self._see_changed(function, given, node, frame)
        is_handed = bool(self._refused) and any(not self._refused.isdisjoint(views_of(value)) for value in given)
        unknown = frame.unfollowed(node, f"what `{function.qualified_name}` returns")
        unknown = self._maybe_sharing(unknown, given, self.returned.get(id(function.node), ()))
        is_deeper = len(frame.active) > WRITERS_DEPTH if is_handed else self._is_deeper(function, frame)
        if id(function.node) in frame.active or is_deeper or self.is_spent:
            return unknown
        if not self._is_plain(function):
            return unknown
        if not (self.is_deep or any(map(_shares, given))):
            self.skipped[unknown.name] = unknown
            return unknown
        is_unread = id(node) == frame.unread and not self._hands_on(function)
        if is_unread and not (is_handed or id(function.node) in self._for_sizes or any(map(_is_strided, given))):
            return unknown
        own = [function.bound] if function.bound is not None else []
        bound = bind_arguments(function.node, [*own, *positional], keywords, frame)
        if bound is None:
            return unknown
        function = self._closed(function, frame)
        key = (id(function.node), is_unread, tuple(bound.items()), function.closure)
        if key not in self._summaries:
            self._summaries[key] = unknown
            self._summaries[key] = self._call(function, bound, node, frame, is_unread)
        return self._summaries[key]

    def _closed(self, function: Function, frame: Frame) -> Function:
        """Called where it was defined, it sees the names around it as they are now."""
        if function.home != frame.key or not function.closure:
            return function
        names = frame.state.names
        free = self.body_of(function.node).whole.mentioned
        return replace(function, closure=tuple((name, names[name]) for name in sorted(free & names.keys())))

    def _is_deeper(self, function: Function, frame: Frame) -> bool:
        """Would a call of the function lead deeper than calls are followed?  A short one costs little."""
        body = function.node.body
        is_short = not isinstance(body, list) or len(body) <= SHORT
        return len(frame.active) - frame.base > self._depth + is_short or len(frame.active) > ACTIVE_AT_MOST

    def _see_changed(self, function: Function, given: Sequence[Value], node: ast.expr, frame: Frame) -> None:
        """What a call of the function may change of what is known: arguments in place, and attributes."""
        if id(function.node) in function.program.reshaping:
            for value in given:
                forget(value, frame, node.lineno)
        for name in [name for name in frame.state.dotted if frame.is_bound_elsewhere(name)]:
            why = f"`{name}`, which may have been bound anew"
            frame.state.bind(name, forgotten(frame.state.names[name], why, node.lineno, f"{name}~"))
        held = [value for value in given if isinstance(value, Several | Mapping | Repeated)]
        if held and self.body_of(function.node).whole.touched & {a.arg for a in _plain(function.node)}:
            for value in held:
                forget_holders(value, "", frame, node.lineno)

    def _is_plain(self, function: Function) -> bool:
        """Does a call of it return what its body does?"""
        key = id(function.node)
        if key not in self._plain:
            decorators = getattr(function.node, "decorator_list", ())
            self._plain[key] = all(self._is_transparent(decorator, function.program) for decorator in decorators)
        return self._plain[key]

    def _is_transparent(self, decorator: ast.expr, program: Program) -> bool:
        callee = decorator.func if isinstance(decorator, ast.Call) else decorator
        name = program.resolve(dotted(callee))
        if self.is_deep and name.partition(".")[0] not in ("torch", "functools") and dotted(callee) != name:
            found = self._project.definition(name, program.path)
            if found is not None:
                return is_transparent(ast.Name(found[1]), found[0])
        return is_transparent(decorator, program)

    def _hands_on(self, function: Function) -> bool:
        """Does its result share storage with that of a site which is asked about, so that a write to it matters?"""
        return not self.notebook.asked.isdisjoint(self.returned.get(id(function.node), ()))

    def _call(
        self, function: Function, bound: dict[str, Value], node: ast.expr, frame: Frame, is_unread: bool
    ) -> Value:
        inner = self.new_frame(
            State(dict(function.closure)),
            f"{frame.place(node).key}>",
            function.qualified_name,
            (*frame.active, id(function.node)),
            function.program,
        )
        inner.base = frame.base
        inner.callers = frame.callers
        if not isinstance(function.node, ast.Lambda):
            inner.callers += (Reason(f"called from `{frame.name or 'the module'}`", line=node.lineno),)
        inner.shared = frozenset(function.program.shared.get(id(function.node), ()))
        for name, value in bound.items():
            inner.bind(name, value)
        inner.arguments = frozenset(bound)
        given = frozenset(name for name, value in bound.items() if self._is_relevant(value))
        inner.slice = self._slice(function.node, returns=not is_unread, is_called=True, given=given)
        self._run_body(function.node, inner)
        if id(function.node) in function.program.generators:
            yielded = frame.unfollowed(node, f"what `{function.qualified_name}` yields")
            return replace(yielded, holds=frozenset(inner.yielded))
        return choose((value, frozenset()) for value, _ in inner.returned) if inner.returned else Constant(None)

    def _is_relevant(self, value: Value) -> bool:
        """Is it, or does it hold, a function whose calls bear on the sites that are asked about?"""
        if isinstance(value, Function):
            return value.qualified_name.rpartition(".")[2] in self._relevant
        return isinstance(value, _CARRIERS) and any(map(self._is_relevant, parts(value)))

    def method(self, of: Class, name: str) -> Function | None:
        return self._members.method(of, name)

    def overriding(self, of: Class, name: str) -> list[Function]:
        return self._members.overriding(of, name)

    def method_after(self, of: Class, within: int, name: str) -> Function | None:
        return self._members.method_after(of, within, name)

    def torch_module(self, of: Class, within: int) -> str | None:
        return self._members.torch_module(of, within)

    def is_managed(self, of: Class, name: str) -> bool:
        return self._members.is_managed(of, name)

    def attribute(self, of: Instance, name: str, frame: Frame) -> Value | None:
        return self._members.attribute(of, name, frame)

    def imported(self, name: str, unknown: Unknown, given: Iterable[Value], frame: Frame) -> Value | None:
        if self.is_deep:
            return self.defined(name, frame.program)
        if self._project.may_define(name, frame.program.path):
            self._skip(unknown, given)
        return None

    def _skip(self, unknown: Unknown, given: Iterable[Value]) -> None:
        self.skipped[unknown.name] = unknown
        for value in given:
            self.handed.update(views_of(value))

    def defined(self, name: str, importer: Program) -> Value | None:
        """What the user's own files define under this import path."""
        found = self._project.definition(name, importer.path)
        if found is None:
            return None
        program, name = found
        value = global_value(name, self.new_frame(State(), "", "", (), program))
        return None if isinstance(value, Qualified | Unknown) else value

    def see_missing(self, of: Class, value: Unknown) -> None:
        if self.is_deep:
            return
        outside = (name for base in self._members.lineage(of) for name in base.program.base_names(base.node))
        if any(self._project.may_define(name, of.program.path) for name in outside):
            self.skipped[value.name] = value

    def returned_by(self, callee: Unknown, unknown: Unknown, given: Iterable[Value]) -> Unknown:
        if callee.name and (callee.name in self.skipped or callee.name.rpartition("#")[0] in self.skipped):
            self._skip(unknown, given)
        return self._maybe_sharing(unknown, given)

    def _maybe_sharing(self, unknown: Unknown, given: Iterable[Value], returned: Collection[int] = ()) -> Unknown:
        """What a call that is not followed returns: where writers are sought, it may be what the call was given."""
        if not self._refused:
            return unknown
        return replace(unknown, views=unknown.views.union(returned, *map(views_of, given)))

    def run(self, body: Sequence[ast.stmt], frame: Frame) -> bool:
        """Run a block; False where control does not come out at its end."""
        for statement in body:
            if frame.slice is not None:
                for name in frame.slice.touched(statement):
                    frame.state.versions[name] = frame.state.versions.get(name, 0) + 1  # tests of it may differ now
                if not self._refused and frame.slice.is_idle(statement) and self._passes_over(statement, frame):
                    continue
            self.steps += 1
            frame.unread = frame.slice.unread(statement) if frame.slice is not None and self._relevant else 0
            if not self._statement(statement, frame):
                return False
            if frame.left is not None and frame.left[-1].versions != frame.state.versions:
                frame.left.append(frame.state.fork())
        return True

    def _passes_over(self, node: ast.stmt, frame: Frame) -> bool:
        """Leave an idle statement out, unless it may write through a view."""
        assert frame.slice is not None
        names = frame.state.names
        for name in frame.slice.mentioned(node):
            if name in names and names[name] is not _PASSED_OVER and _shares(names[name]):
                return False
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() if frame.name:
                self._bind_function(node, frame)
            case ast.ClassDef() if frame.name:
                self._bind_class(node, frame)
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                pass  # the module's own are found in its tree
            case ast.Import() | ast.ImportFrom():
                self._import(node, frame)
            case _:
                for name in sorted(frame.slice.bound(node)):
                    frame.state.bind(name, _PASSED_OVER)
        return True

    def _slice(
        self,
        node: FunctionNode | ast.Module,
        *,
        returns: bool = False,
        is_called: bool = False,
        given: frozenset[str] = frozenset(),
    ) -> Slice:
        """What is to be run of a function; where callers are asked, its own sites matter only once it is called.

        `given` are the parameters that stand for relevant functions.
        """
        sites = self.notebook.asked if is_called or not self.notebook.with_callers else frozenset()
        key = (id(node), returns, bool(sites), given)
        if key not in self._slices:
            self._slices[key] = Slice(self.body_of(node), sites, self._relevant | given, returns=returns)
        return self._slices[key]

    def body_of(self, node: FunctionNode | ast.Module) -> Body:
        if id(node) not in self._bodies:
            self._bodies[id(node)] = Body(node, self.program.sites, self.program.effective)
        return self._bodies[id(node)]

    def _statement(self, node: ast.stmt, frame: Frame) -> bool:
        match node:
            case ast.Expr():
                evaluate(node.value, frame)
            case ast.Assign():
                value = evaluate(node.value, frame)
                for target in node.targets:
                    if isinstance(value, Choice):
                        show_rank(target, node.value, frame)
                    assign(target, value, frame)
            case ast.AnnAssign():
                if node.value is not None:
                    assign(node.target, evaluate(node.value, frame), frame)
            case ast.AugAssign():
                self._augment(node, frame)
            case ast.If():
                return self._if(node, frame)
            case ast.For() | ast.AsyncFor() | ast.While():
                return self._loop(node, frame)
            case ast.Return():
                self._return(node, frame)
                return False
            case ast.With() | ast.AsyncWith():
                return self._with(node, frame)
            case _ if isinstance(node, TRIES):
                return self._try(node, frame)  # type: ignore[arg-type]
            case ast.Assert():
                evaluate(node.test, frame)
                frame.state = narrowed(frame.state, node.test, True, frame)
            case ast.Raise():
                if node.exc is not None and not (frame.slice is not None and frame.slice.leaves_idly(node)):
                    evaluate(node.exc, frame)
                return False
            case ast.Break():
                frame.breaks.append(frame.state)
                return False
            case ast.Continue():
                frame.continues.append(frame.state)
                return False
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                self._define(node, frame)
            case ast.ClassDef():
                self._define_class(node, frame)
            case ast.Import() | ast.ImportFrom():
                self._import(node, frame)
            case ast.Match():
                return self._match(node, frame)
            case ast.Delete():
                for target in node.targets:
                    if isinstance(target, ast.Name):
                        frame.state.names.pop(target.id, None)
                    elif isinstance(target, ast.Subscript):
                        forget_holders(evaluate(target.value, frame), "", frame, node.lineno)
        return True

    def _return(self, node: ast.Return, frame: Frame) -> None:
        if frame.slice is not None and frame.slice.leaves_idly(node) and self._passes_over(node, frame):
            return
        frame.returned.append((evaluate(node.value, frame) if node.value else Constant(None), frame.state.facts))

    def _augment(self, node: ast.AugAssign, frame: Frame) -> None:
        """`x += y` writes in place to a tensor, and binds anything else anew."""
        right = evaluate(node.value, frame)
        if isinstance(node.target, ast.Subscript):
            base = evaluate(node.target.value, frame)
            evaluate(node.target.slice, frame)
            frame.notebook.write(written_views(base), "written by augmented assignment", node.lineno)
            return
        left = evaluate(node.target, frame)
        if not isinstance(node.op, ast.MatMult):
            frame.notebook.write(written_views(left), "written by augmented assignment", node.lineno)
        is_in_place = not isinstance(node.op, ast.MatMult)  # torch has no `__imatmul__`
        if is_in_place and any(isinstance(option, Tensor) and option.number is None for option, _ in options(left)):
            return
        for option, _ in options(left):
            forget_holders(option, dotted(node.target), frame, node.lineno)
        placed = ast.copy_location(ast.BinOp(node.target, node.op, node.value), node)
        assign(node.target, operate(placed, type(node.op), left, right, frame), frame)

    def _if(self, node: ast.If, frame: Frame) -> bool:
        test = evaluate(node.test, frame)
        before = frame.state
        ends: list[tuple[State, Condition | None]] = []
        for is_true, body in ((True, node.body), (False, node.orelse)):
            fact = frame.condition(node.test, is_true, before)
            if (fact[0], not fact[1]) in before.facts:
                continue
            frame.state = narrowed(before.fork(fact), node.test, is_true, frame)
            self.notebook.unreached += not may_be(test, is_true)
            if self.run(body, frame):
                ends.append((frame.state, fact))
            self.notebook.unreached -= not may_be(test, is_true)
        return self._come_together(ends, frame)

    def _come_together(self, ends: Sequence[tuple[State, Condition | None]], frame: Frame) -> bool:
        joined = join(ends)
        if joined is None:
            return False
        frame.state = joined
        return True

    def _loop(self, node: ast.For | ast.AsyncFor | ast.While, frame: Frame) -> bool:
        iterable = evaluate(node.iter, frame) if not isinstance(node, ast.While) else None
        is_live = False
        if iterable is not None and not isinstance(node, ast.While) and frame.slice is not None:
            touched = frame.slice.touched(node)
            each = taken_apart(node.iter, iterable, touched, frame)
            if each is not None:
                return self._one_by_one(node, each, frame)
            is_live = may_change(node.iter, touched)
        outer = frame.breaks, frame.continues, frame.round
        outer_round = frame.round
        frame.breaks = []
        ends: list[tuple[State, Condition | None]] = [(frame.state, (f"runs_the_loop_at_line_{node.lineno}", False))]
        changed: list[str] = []
        outer_fresh = frame.fresh
        frame.loops += 1
        carries = frame.slice is None or frame.slice.carries(node, frame.state.names)
        for i in range(ROUNDS_AT_MOST if carries or is_live else 1):
            frame.round, frame.continues, frame.fresh = outer_round * UNROLLED_AT_MOST + i, [], set()
            before = frame.state.names
            frame.state = frame.state.fork()
            if i == ROUNDS_AT_MOST - 1:
                _forget(frame.state, changed, node)
            if isinstance(node, ast.While):
                evaluate(node.test, frame)
            elif iterable is not None:
                iterable = evaluate(node.iter, frame) if is_live and i else iterable
                bind_element(node.target, iterable, node.iter, frame)
            if self.run(node.body, frame):
                ends.append((frame.state, None))
            ends += [(state, None) for state in frame.continues]
            joined = join(ends)
            assert joined is not None
            frame.state = joined
            ends = [(joined, None)]
            changed = [name for name, value in before.items() if not is_alike(value, joined.names.get(name, value))]
            if i >= ROUNDS - 1 and not changed:
                break
        frame.loops -= 1
        frame.fresh = outer_fresh
        broken = frame.breaks
        frame.breaks, frame.continues, frame.round = outer
        return self._leave(node, True, broken, frame)

    def _leave(
        self, node: ast.For | ast.AsyncFor | ast.While, is_exhausted: bool, broken: Sequence[State], frame: Frame
    ) -> bool:
        """Go on behind a loop; only where no `break` led out of it by way of its `else`."""
        ends: list[tuple[State, Condition | None]] = [(state, None) for state in broken]
        if is_exhausted and self.run(node.orelse, frame):
            ends.append((frame.state, None))
        return self._come_together(ends, frame)

    def _one_by_one(self, node: ast.For | ast.AsyncFor, each: Sequence[Value], frame: Frame) -> bool:
        """A round for each of the elements, which are known: what one leaves is where the next begins."""
        outer = frame.breaks, frame.continues, frame.round
        outer_round = frame.round
        frame.breaks = []
        goes_on = True
        for i, item in enumerate(each):
            frame.round, frame.continues = outer_round * UNROLLED_AT_MOST + i, []
            assign(node.target, item, frame)
            ends: list[tuple[State, Condition | None]] = [(frame.state, None)] if self.run(node.body, frame) else []
            goes_on = self._come_together([*ends, *((state, None) for state in frame.continues)], frame)
            if not goes_on:
                break
        broken = frame.breaks
        frame.breaks, frame.continues, frame.round = outer
        return self._leave(node, goes_on, broken, frame)

    def _with(self, node: ast.With | ast.AsyncWith, frame: Frame) -> bool:
        swallows = False
        for item in node.items:
            value = evaluate(item.context_expr, frame)
            if item.optional_vars is not None:
                assign(item.optional_vars, self._entered(value, item.context_expr, frame), frame)
            swallows = swallows or self._swallows(item.context_expr, value)
        if not swallows:
            return self.run(node.body, frame)
        falls, raised = self._run_watched(node.body, frame)
        ends = [raised, frame.state] if falls else [raised]
        return self._come_together([(state, None) for state in ends], frame)

    def _entered(self, value: Value, node: ast.expr, frame: Frame) -> Value:
        """What `with value as name` binds."""
        method = self.method(value.of, "__enter__") if isinstance(value, Instance) else None
        if method is not None:
            return self.call_function(replace(method, bound=value), [], {}, node, frame)
        if isinstance(value, Instance):
            return value
        return replace(frame.unfollowed(node, "a context manager's value"), views=frozenset(views_of(value)))

    def _swallows(self, node: ast.expr, value: Value) -> bool:
        """Does the block behind this context manager leave an exception behind?"""
        callee = node.func if isinstance(node, ast.Call) else node
        if dotted(callee).rpartition(".")[2] in _SWALLOWING:
            return True
        method = self.method(value.of, "__exit__") if isinstance(value, Instance) else None
        return method is not None and any(_answers(inner) for inner in ast.walk(method.node))

    def _run_watched(self, body: Sequence[ast.stmt], frame: Frame) -> tuple[bool, State]:
        """Run a block that an exception may leave: does it come to its end, and what an exception may leave behind."""
        outer, frame.left = frame.left, [frame.state.fork()]
        falls = self.run(body, frame)
        raised = join([(state, None) for state in frame.left])
        assert raised is not None
        if outer is not None:
            outer.append(raised.fork())
        frame.left = outer
        return falls, raised

    def _try(self, node: ast.Try, frame: Frame) -> bool:
        if not node.finalbody:
            return self._try_blocks(node, frame)
        outer = frame.breaks, frame.continues
        frame.breaks, frame.continues = [], []
        falls = self._try_blocks(node, frame)
        after, leaving = frame.state, (frame.breaks, frame.continues)
        frame.breaks, frame.continues = outer
        for states, kept in zip(leaving, outer, strict=True):  # `finally` is run on the way out
            if self._come_together([(state, None) for state in states], frame) and self.run(node.finalbody, frame):
                kept.append(frame.state)
        frame.state = after
        return falls

    def _try_blocks(self, node: ast.Try, frame: Frame) -> bool:
        ends: list[tuple[State, Condition | None]] = []
        falls, raised = self._run_watched(node.body, frame)
        after = frame.state
        left = [(raised.fork(), None), (after.fork(), None)]
        if falls and self.run(node.orelse, frame):
            ends.append((frame.state, None))
            left.append((frame.state.fork(), None))
        for handler in node.handlers:
            frame.state = raised.fork()
            if handler.name:
                frame.state.bind(handler.name, Foreign("an exception"))
            falls = self.run(handler.body, frame)
            left.append((frame.state.fork(), None))
            if falls:
                ends.append((frame.state, None))
        if node.finalbody:
            self._come_together(left, frame)
            self.run(node.finalbody, frame)
        return self._come_together(ends, frame) and self.run(node.finalbody, frame)

    def _match(self, node: ast.Match, frame: Frame) -> bool:
        evaluate(node.subject, frame)
        before = frame.state
        ends: list[tuple[State, Condition | None]] = [(before, None)]
        for case in node.cases:
            frame.state = before.fork()
            for captured in ast.walk(case.pattern):
                if isinstance(captured, ast.MatchAs | ast.MatchStar) and captured.name:
                    frame.state.bind(captured.name, Unknown(f"what `{captured.name}` matches", case.body[0].lineno))
            if case.guard is not None:
                evaluate(case.guard, frame)
            if self.run(case.body, frame):
                ends.append((frame.state, None))
        return self._come_together(ends, frame)

    def _define(self, node: ast.FunctionDef | ast.AsyncFunctionDef, frame: Frame) -> None:
        for default in (*node.args.defaults, *node.args.kw_defaults):
            if default is not None:
                evaluate(default, frame)
        if frame.name:
            self.look_into(self._bind_function(node, frame), frame)

    def _define_class(self, node: ast.ClassDef, frame: Frame) -> None:
        if not frame.name:
            self.run(
                [s for s in node.body if not isinstance(s, ast.FunctionDef | ast.AsyncFunctionDef)],
                replace(frame, state=frame.state.fork()),
            )
            return
        of = self._bind_class(node, frame)
        for method in node.body:
            if isinstance(method, ast.FunctionDef | ast.AsyncFunctionDef):
                name, this = f"{of.qualified_name}.{method.name}", Instance(of, "self")
                self.look_into(Function(method, name, frame.program, this, frame.closure(node)), frame)

    def _bind_function(self, node: ast.FunctionDef | ast.AsyncFunctionDef, frame: Frame) -> Function:
        name = f"{frame.name}.{node.name}"
        function = Function(node, name, frame.program, closure=frame.closure(node), home=frame.key)
        frame.state.bind(node.name, function)
        return function

    def _bind_class(self, node: ast.ClassDef, frame: Frame) -> Class:
        of = Class(node, f"{frame.name}.{node.name}", frame.program)
        frame.state.bind(node.name, of)
        return of

    def _import(self, node: ast.Import | ast.ImportFrom, frame: Frame) -> None:
        for alias in node.names:
            name = alias.asname or alias.name.partition(".")[0]
            if name in frame.program.imports:
                frame.state.bind(name, Qualified(frame.program.imports[name]))


_SWALLOWING = frozenset({"suppress", "raises", "assertRaises", "assertRaisesRegex", "warns"})
"""Context managers behind whose block the program goes on where it raises."""


def _plain(node: FunctionNode) -> Sequence[ast.arg]:
    return (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)


def _forget(state: State, names: Iterable[str], loop: ast.stmt) -> None:
    for name in names:
        value, why = state.names[name], f"`{name}`, which differs from round to round of a loop"
        changing = forgotten(value, why, loop.lineno, f"{name}~")
        is_list = all(isinstance(option, Several | Repeated) for option, _ in options(value))
        state.bind(name, Repeated(replace(changing, views=changing.held())) if is_list else changing)


def _answers(node: ast.AST) -> bool:
    """A `return` of what may be true."""
    if not isinstance(node, ast.Return) or node.value is None:
        return False
    return not (isinstance(node.value, ast.Constant) and not node.value.value)


def _shares(value: Value) -> bool:
    """Does it share storage with the result of a site?"""
    if isinstance(value, Tensor | Foreign | Unknown | Instance):
        return bool(value.held() if isinstance(value, Unknown) else value.views)
    return isinstance(value, _CARRIERS) and any(map(_shares, parts(value)))


def _is_strided(value: Value) -> bool:
    """Is it a tensor whose dims a view cannot merge even where all that the source leaves open is contiguous?"""
    if isinstance(value, Tensor):
        return not value.default.is_mergeable
    return isinstance(value, _CARRIERS) and any(map(_is_strided, parts(value)))


_CARRIERS = (Choice, Several, Leading, Mapping, Repeated, Method, Partial)
