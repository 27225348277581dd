"""From what was observed at a view to its verdict, and the chain of places that explains it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from codemod.evidence.failure import Kind
from codemod.evidence.shown import Shown
from codemod.finding import Reason, Verdict
from codemod.layout.op_call import Observation, OpCall
from codemod.layout.origin import Origin, OriginKind
from codemod.layout.record import record
from codemod.layout.state import BEHIND
from codemod.layout.value import Foreign, Number, Tensor, Unknown
from codemod.layout.viewable import Judgement, Legality

_NAMED = frozenset(
    {
        OriginKind.CALLER,
        OriginKind.MEMORY_FORMAT,
        OriginKind.CONVOLUTION,
        OriginKind.BACKEND,
        OriginKind.SIZE_ONE,
        OriginKind.GRADIENT,
    }
)
"""Origins of a layout that somebody may really bring."""

_KEY = re.compile(r"[\w.]*:\d+:\d+[^`.\s]*\.?")
"""Where an object was made, as the analysis names it: `Net.forward:7:9:30.hidden` is `hidden` to a reader."""


@record(frozen=True, slots=True)
class Ruling:
    """A verdict with its reasons, most telling first."""

    verdict: Verdict
    reasons: tuple[Reason, ...] = ()
    unwritten: Verdict | None = None
    """Of what is written through: the verdict if it were not."""


def rule_on(call: OpCall) -> Ruling:
    """The verdict of a view, or of an op that is a view where it can be; what was seen of it goes before the source."""
    ruling = _of_source(call)
    refused = call.seen.of(Kind.VIEW_REFUSED)
    if not refused:
        return ruling
    reasons = (*(one.reason for one in refused[:2]), *_contradiction(ruling, refused), *ruling.reasons)
    if ruling.verdict is Verdict.WRITTEN_THROUGH:
        return Ruling(ruling.verdict, reasons, Verdict.FAILING)
    if through := _written_through(call):
        return Ruling(Verdict.WRITTEN_THROUGH, (*reasons, *through[:2]), Verdict.FAILING)
    return Ruling(Verdict.FAILING, reasons)


def _written_through(call: OpCall) -> tuple[Reason, ...]:
    """The places that would lose a write, or an alias, to a copy."""
    return () if call.is_unshared else call.writes or call.keeps


def _contradiction(ruling: Ruling, refused: Sequence[Shown]) -> tuple[Reason, ...]:
    """What was refused cannot be safe: one of the two is wrong, and the user is told."""
    if ruling.verdict not in (Verdict.SAFE, Verdict.NOT_A_SHAPE_VIEW):
        return ()
    text = f"the source says that it is {ruling.verdict.value}"
    if any(one.is_of_this_text for one in refused):
        return (Reason(f"{text}: a fault of torch-codemod, please report it"),)
    return (Reason(f"{text}: the file has changed since, or torch-codemod is wrong (please report it)"),)


def _of_source(call: OpCall) -> Ruling:
    seen = [observation for observation in call.observations if _is_tensor(observation)]
    if not call.observations:
        return Ruling(Verdict.UNKNOWN, (Reason("the analysis does not reach this call"),))
    if not seen:
        return Ruling(Verdict.NOT_A_SHAPE_VIEW, (Reason(_what(call.observations[0])),))
    if not any(observation.is_target_a_shape for observation in seen):
        return Ruling(Verdict.NOT_A_SHAPE_VIEW, (Reason("its argument is, or may be, a dtype"),))
    ruling = _of_layouts(seen)
    if ruling.verdict is not Verdict.SAFE and (through := _written_through(call)):
        return Ruling(Verdict.WRITTEN_THROUGH, (*through[:2], *ruling.reasons), ruling.verdict)
    return ruling


def _is_tensor(observation: Observation) -> bool:
    return isinstance(observation.receiver, Tensor | Unknown | Number) and observation.default is not None


def _what(observation: Observation) -> str:
    if not observation.is_target_a_shape:
        return "its argument is a dtype"
    receiver = observation.receiver
    return f"its receiver is {receiver.kind}" if isinstance(receiver, Foreign) else "its receiver is not a tensor"


def _of_layouts(seen: Sequence[Observation]) -> Ruling:
    alone = [observation for observation in seen if not observation.callers]
    called = [observation for observation in seen if observation.callers]
    if all(_any(observation) is Legality.LEGAL for observation in alone or called):
        return Ruling(Verdict.SAFE)
    failing = next((o for o in called if _is_failing(o) and _is_reached(o, seen)), None)
    if failing is None and not (called and all(_default(o) is Legality.LEGAL for o in called)):
        failing = next((o for o in alone if _is_failing(o) and _is_reached(o, seen)), None)
    if failing is not None:
        return Ruling(Verdict.FAILING, _failing_reasons(failing))
    return _open(alone or called)


def _open(seen: Sequence[Observation]) -> Ruling:
    switched = next((o for o in seen if _is_failing(o)), None)
    if switched is not None:
        return Ruling(Verdict.LAYOUT_DEPENDENT, (*_switches(switched), *_failing_reasons(switched)))
    judged = [j for o in seen for j in (o.any, o.default) if j is not None and j.legality is not Legality.LEGAL]
    origins = tuple(dict.fromkeys(origin for judgement in judged for origin in judgement.origins))
    missing = [origin for origin in origins if origin.kind not in _NAMED]
    if any(judgement.is_target_open for judgement in judged) or not origins:
        return Ruling(
            Verdict.UNKNOWN, (Reason("whether the target keeps apart what cannot be merged"), *_spell(missing))
        )
    if missing:
        return Ruling(Verdict.UNKNOWN, _spell(missing))
    return Ruling(Verdict.LAYOUT_DEPENDENT, _spell(origins))


def _switches(observation: Observation) -> tuple[Reason, ...]:
    """The settings of the model under which torch refuses."""
    tests = {(test.partition(BEHIND)[0], held): None for test, held in sorted(observation.when)}
    return tuple(Reason(f"only where `{test}` is {held}") for test, held in tests)


def _is_failing(observation: Observation) -> bool:
    """Refused with everything contiguous that may be, or merging dims of a gradient, whose layout nobody chooses."""
    if _default(observation) is Legality.REFUSED:
        return True
    default = observation.default
    return (
        default is not None
        and default.legality is Legality.MAYBE
        and bool(default.origins)
        and all(origin.kind is OriginKind.GRADIENT for origin in default.origins)
    )


def _is_reached(observation: Observation, seen: Sequence[Observation]) -> bool:
    """Not only behind a switch (`self.fused`, a device) that may never be set so, while it works the other way."""
    if all(_is_failing(other) for other in seen if other.callers == observation.callers):
        return True
    return not observation.when


def _default(observation: Observation) -> Legality:
    return observation.default.legality if observation.default else Legality.MAYBE


def _any(observation: Observation) -> Legality:
    return observation.any.legality if observation.any else Legality.MAYBE


def _failing_reasons(observation: Observation) -> tuple[Reason, ...]:
    last = observation.receiver.history if isinstance(observation.receiver, Tensor) else None
    history = last.steps() if last is not None else ()
    steps = tuple(Reason(f"strided since {step.text}", step.path, step.line) for step in history[:1])
    steps += tuple(Reason(f"then {step.text}", step.path, step.line) for step in history[1:])
    origins = _spell(observation.default.origins) if observation.default else ()
    return (*steps, *origins, *_merge(observation.default), *observation.callers[-2:])


def _merge(judgement: Judgement | None) -> tuple[Reason, ...]:
    if judgement is None or judgement.at is None:
        return ()
    return (Reason(f"merges dims {judgement.at} and {judgement.at + 1} of it here"),)


def _spell(origins: Iterable[Origin]) -> tuple[Reason, ...]:
    return tuple(Reason(_KEY.sub("", origin.text), line=origin.line) for origin in list(origins)[:3])
