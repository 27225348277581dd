"""One rung of the verification ladder: the user's program run in one way, in a process of its own.

Started by path with a file that holds the request as JSON; the answer is written to the file which that names.
Outputs and gradients are compared with those that the eager rung saved.
"""

from __future__ import annotations

import contextlib
import faulthandler
import functools
import importlib
import importlib.util
import inspect
import itertools
import json
import linecache
import math
import random
import re
import sys
import sysconfig
import time
import traceback
import types
from pathlib import Path

_HERE = Path(__file__).resolve().parent
if sys.path and Path(sys.path[0]).resolve() == _HERE:
    del sys.path[0]

_OURSELVES = sys.modules.get("__main__")  # kept: a module that nobody holds loses its globals
_open, _loads, _dumps = open, json.loads, json.dumps

SEED = 0
MESSAGE_CHARACTERS = 600
TOLERANCES = {
    "float64": (1e-7, 1e-7),
    "complex128": (1e-7, 1e-7),
    "float32": (1e-4, 1e-5),
    "complex64": (1e-4, 1e-5),
    "float16": (1e-2, 1e-3),
    "bfloat16": (4e-2, 1e-2),
}
"""By dtype: of the largest magnitude in eager's tensor, and beside that; every other dtype must be equal."""

_WRITTEN_LEAF = re.compile(r"leaf Variable that requires grad")
"""What torch says of an input that the program writes to: its gradient cannot be asked for."""
_NO_GPU = re.compile(r"not compiled with CUDA enabled|No CUDA GPUs are available|Found no NVIDIA driver", re.I)
_FRAME = re.compile(r'^\s*File "(?P<path>[^"\n]+)", line (?P<line>\d+)(?:,? in (?P<function>[^\n,]+))?,?', re.M)
_ENDS = re.compile(
    r"\n\s*(?:from user code:|Found from|While executing|Original traceback:|Exception raised from|target: |"
    r"Set TORCHDYNAMO_VERBOSE|Use tlparse|You can suppress|Developer debug context:)"
)
_SECTIONS = ("from user code:", "Original traceback:", "Found from")
_OPERATIONS = (
    re.compile(r"^\s*target: (\S+)$", re.M),
    re.compile(r"While executing %\S+ : .*?\[target=([^\]]+)\]"),
    re.compile(r"call_(?:function|method|module) (<[^>]+>|[\w.]+)\("),
)
_FAKED = re.compile(r"RuntimeError when making fake tensor call.*? got (\w+)\((['\"])(.*?)\2\)\n", re.S)
"""What dynamo wraps the error of an operation on fake tensors in."""
_GENERATED = re.compile(r"torch\.ops\.([\w.]+)\(|extern_kernels\.(\w+)\(")
_SOURCE_NODES = re.compile(r"Topologically Sorted Source Nodes: \[([^\]]*)\], Original ATen: \[([^\]]*)\]")
_CALLED_IN_CPP = re.compile(r"at::_ops::(\w+)::(?:re)?(?:call|dispatch)")


class Refused(Exception):
    """It cannot be run as asked; the message says place, fact and next step."""


class Skipped(Exception):
    """This rung cannot be stood on here; the message says why."""


class Stopped(Exception):
    """What the user's program or the compiler raised, and at which stage."""

    def __init__(self, stage, error):
        super().__init__(stage)
        self.stage = stage
        self.error = error


@contextlib.contextmanager
def _at(stage):
    try:
        yield
    except (Refused, Skipped, Stopped):
        raise
    except BaseException as error:  # a SystemExit of the user's is a result too
        if _NO_GPU.search(str(error)):
            raise Skipped("no GPU: " + _first_line(str(error))) from None
        raise Stopped(stage, error) from error


def main(request_path):
    """Answer one request; the exit code stays 0 whatever the rung shows."""
    with _open(request_path, encoding="utf-8") as file:
        request = _loads(file.read())
    stack = _open(request["stack"], "w", encoding="utf-8")
    faulthandler.enable(stack)  # where the program stood when it crashed, or when time ran out
    faulthandler.dump_traceback_later(0.9 * request["timeout"], file=stack)
    answer = locate(request) if request["rung"] == "locate" else stand(request)
    faulthandler.cancel_dump_traceback_later()
    with _open(request["answer"], "w", encoding="utf-8") as file:
        file.write(_dumps(answer))


def locate(request):
    """The file of a target's module, which is not run for that."""
    place, _ = _parts(request["target"])
    sys.path[:0] = [str(Path.cwd()), *request["path"]]
    try:
        spec = importlib.util.find_spec(place)
    except (ImportError, ValueError):
        spec = None
    if spec is None or not spec.origin or not Path(spec.origin).is_file():
        return {"status": "refused", "why": place + ": no such module here; check the name and the folder you are in"}
    return {"status": "ok", "file": spec.origin}


def stand(request):
    """Run the rung, and say what became of it."""
    begun = time.monotonic()
    graphs = []
    try:
        torch = _torch(request["rung"])
        program = Program(torch, request)
        begun = time.monotonic()
        answer = program.answer(graphs)
    except Refused as refused:
        return {"status": "refused", "why": str(refused)}
    except Skipped as skipped:
        answer = {"status": "skipped", "why": str(skipped)}
    except Stopped as stopped:
        answer = {"status": "failed", "failure": Failure(stopped, graphs, request).told()}
    answer["seconds"] = time.monotonic() - begun
    return answer


def _torch(rung):
    """torch, with the compilers ready where the rung is one of theirs."""
    try:
        import torch
    except ImportError as error:
        why = "{} cannot import torch ({}); name an interpreter that can with --python"
        raise Refused(why.format(sys.executable, error)) from None
    if rung == "eager":
        return torch
    import torch._dynamo
    import torch._functorch.config
    import torch._inductor.config

    torch._functorch.config.enable_autograd_cache = False  # what comes out of a cache was not compiled here
    torch._inductor.config.fx_graph_cache = False
    torch._inductor.config.fallback_random = True  # eager's random numbers, so that dropout can be compared
    return torch


class Program:
    """The user's model or function with its inputs."""

    def __init__(self, torch, request):
        self.torch = torch
        self.request = request
        self.module, named = _load(request, functools.partial(_seed, torch))
        _seed(torch)
        with _at("build"):
            self.model = _built(self.module, named, request["target"])
        _seed(torch)
        self.arguments, self.keywords = self._inputs()

    def answer(self, graphs):
        rung, reference = self.request["rung"], self.request["reference"]
        wants_gradients = self.request["gradients"] and rung not in ("run_decompositions", "aot_inductor")
        is_tracked = wants_gradients and self.request["track_inputs"]
        try:
            produced = self._run(graphs, wants_gradients, is_tracked)
        except Stopped as stopped:
            if rung != "eager" or not is_tracked or not _WRITTEN_LEAF.search(str(stopped.error)):
                raise
            self.arguments, self.keywords = self._inputs()
            produced, is_tracked = self._run(graphs, wants_gradients, False), False
        answer = {"status": "ok", "track_inputs": is_tracked}
        if reference is not None:
            answer = {**answer, **_compared(self.torch, self.torch.load(reference), produced)}
        if self.request["save"] is not None:
            self.torch.save(produced, self.request["save"])
        return answer

    def _inputs(self):
        given, source = self.request["inputs"], "--inputs"
        try:
            if given is not None:
                return _evaluated(given, {**vars(self.module), "torch": self.torch})
            source = "example_inputs()"
            example = getattr(self.model, "example_inputs", None) or getattr(self.module, "example_inputs", None)
            if example is not None:
                return _arguments(example())
        except Exception as error:
            if _NO_GPU.search(str(error)):
                raise Skipped("no GPU: " + _first_line(str(error))) from None
            raise Refused("{}: {} ({})".format(source, _first_line(str(error)), type(error).__name__)) from None
        if _required(self.model):
            raise Refused(
                "{}: no inputs; write example_inputs() beside it, which returns a tuple of arguments, "
                'or give --inputs "torch.randn(2, 3)"'.format(self.request["target"])
            )
        return (), {}

    def _run(self, graphs, wants_gradients, is_tracked):
        torch = self.torch
        arguments, keywords = self.arguments, self.keywords
        if is_tracked or self.request["rung"] == "aot_inductor":
            arguments, keywords = _with_grad(torch, (arguments, keywords), is_tracked)
        with torch.set_grad_enabled(wants_gradients):
            call = _RUNGS[self.request["rung"]](self, arguments, keywords, graphs)
            _seed(torch)
            with _at("forward"):
                result = call(*arguments, **keywords)
        labelled, spec = torch.utils._pytree.tree_flatten_with_path(result)
        outputs = {"output" + torch.utils._pytree.keystr(path): leaf for path, leaf in labelled}
        asked = _asked(torch, self._module_of(call), arguments, keywords) if wants_gradients else {}
        with _at("backward"):
            gradients = _gradients(torch, list(outputs.values()), asked)
        return {
            "structure": str(spec),
            "outputs": {label: _plain(torch, leaf) for label, leaf in outputs.items()},
            "gradients": gradients,
        }

    def _module_of(self, call):
        is_export = self.request["rung"] == "export"
        return call if is_export else self.model

    def as_module(self):
        """The model, or the function as the forward of a module; with the function's own parameter names."""
        if isinstance(self.model, self.torch.nn.Module):
            return self.model
        module = self.torch.nn.Module()
        module.forward = self.model
        return module

    def dynamic_shapes(self):
        given = getattr(self.model, "dynamic_shapes", None) or getattr(self.module, "dynamic_shapes", None)
        return given() if callable(given) else given


def _eager(program, arguments, keywords, graphs):
    return program.model


def _compiled(program, arguments, keywords, graphs, backend, dynamic=None):
    if backend == "inductor":
        _check_compiler(program.torch)
    compiler = program.torch._dynamo.lookup_backend(backend)

    def recorded(graph, inputs, **options):
        graphs.append(graph.graph)
        return compiler(graph, inputs, **options)

    recorded.__name__ = recorded.__qualname__ = backend
    return program.torch.compile(program.model, backend=recorded, fullgraph=True, dynamic=dynamic)


def _export(program, arguments, keywords, graphs):
    with _at("export"):
        shapes = program.dynamic_shapes()
        module = program.as_module()
        exported = program.torch.export.export(module, arguments, keywords, dynamic_shapes=shapes, strict=False)
    graphs.append(exported.graph)
    return exported


def _exported(program, arguments, keywords, graphs):
    return _export(program, arguments, keywords, graphs).module()


def _decomposed(program, arguments, keywords, graphs):
    exported = _export(program, arguments, keywords, graphs)
    with _at("run_decompositions"):
        return exported.run_decompositions().module()


def _packaged(program, arguments, keywords, graphs):
    inductor = program.torch._inductor
    if not hasattr(inductor, "aoti_load_package"):
        raise Skipped("torch {} has no AOTInductor packages".format(program.torch.__version__))
    _check_compiler(program.torch)
    exported = _export(program, arguments, keywords, graphs)
    with contextlib.suppress(Exception):  # the rung before this one shows what is wrong there
        graphs.append(exported.run_decompositions().graph)  # with the operations that the package calls
    path = Path(program.request["answer"]).with_name("package.pt2")
    with _at("package"):
        inductor.aoti_compile_and_package(exported, package_path=str(path))
    with _at("load"):
        return inductor.aoti_load_package(str(path))


_RUNGS = {
    "eager": _eager,
    "dynamo": functools.partial(_compiled, backend="eager"),
    "aot_eager": functools.partial(_compiled, backend="aot_eager"),
    "aot_eager_decomp_partition": functools.partial(_compiled, backend="aot_eager_decomp_partition"),
    "inductor": functools.partial(_compiled, backend="inductor"),
    "inductor_dynamic": functools.partial(_compiled, backend="inductor", dynamic=True),
    "export": _exported,
    "run_decompositions": _decomposed,
    "aot_inductor": _packaged,
}


def _check_compiler(torch):
    """Inductor on a CPU, and every AOTInductor package, is C++ that has to be compiled."""
    from torch._inductor.cpp_builder import get_cpp_compiler

    try:
        get_cpp_compiler()
    except Exception as error:
        why = "no C++ compiler ({}); install one, or name it in CXX"
        raise Skipped(why.format(_first_line(str(error)))) from None


def _seed(torch):
    random.seed(SEED)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(SEED)
    torch.manual_seed(SEED)


# what is run


def _parts(target):
    place, _, name = target.rpartition(":")
    return place, name


def _load(request, seed):
    place, name = _parts(request["target"])
    seed()
    try:
        module = _imported(place, request["path"])
    except BaseException as error:
        if _NO_GPU.search(str(error)):
            raise Skipped("no GPU: " + _first_line(str(error))) from None
        where = _innermost(error, request)
        why = "{}: cannot be imported ({}: {})"
        raise Refused(why.format(where or place, type(error).__name__, _first_line(str(error)))) from None
    named = module
    for part in name.split("."):
        if not hasattr(named, part):
            raise Refused("{}: no `{}` in it{}".format(place, name, _there(module)))
        named = getattr(named, part)
    if not callable(named):
        raise Refused("{}:{}: a {}; name a function or a class".format(place, name, type(named).__name__))
    return module, named


def _there(module):
    own = [key for key, value in vars(module).items() if getattr(value, "__module__", None) == module.__name__]
    return "; it has " + ", ".join("`{}`".format(key) for key in own[:8]) if own else ""


def _innermost(error, request):
    frames = [frame for frame in _stack(error) if _is_users(frame["path"], request)]
    return "{}:{}".format(frames[-1]["path"], frames[-1]["line"]) if frames else None


def _imported(place, paths):
    """A file is imported as its program would: by its dotted name where it is part of a package."""
    if not place.endswith(".py"):
        sys.path[:0] = [str(Path.cwd()), *paths]
        return importlib.import_module(place)
    file = Path.cwd() / place
    folder, names = file.parent, [file.stem]
    while (folder / "__init__.py").is_file():
        names.insert(0, folder.name)
        folder = folder.parent
    sys.path[:0] = [str(folder), *paths]
    if len(names) > 1:
        return importlib.import_module(".".join(names[:-1] if names[-1] == "__init__" else names))
    return _loose(names[0], file)


def _loose(name, file):
    """A file by itself, under its own name where that is free."""
    name = name if name.isidentifier() and name not in sys.modules else "verified_program"
    spec = importlib.util.spec_from_file_location(name, str(file))
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dynamo and pickle look a function's module up by name
    spec.loader.exec_module(module)
    return module


def _built(module, named, target):
    if not inspect.isclass(named):
        return named
    make = getattr(module, "make_model", None)
    made = make() if make is not None else None
    if isinstance(made, named):
        return made
    required = _required(named)
    if required:
        why = "{}: needs {} to be built; write make_model() beside it, which returns one"
        raise Refused(why.format(target, ", ".join("`{}`".format(name) for name in required)))
    return named()


def _required(called):
    """Names of the parameters that a call must give."""
    called = called.forward if hasattr(called, "forward") and not inspect.isclass(called) else called
    try:
        parameters = inspect.signature(called).parameters.values()
    except (TypeError, ValueError):
        return []
    kinds = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return [p.name for p in parameters if p.default is p.empty and p.kind not in kinds]


def _evaluated(given, names):
    """`--inputs` are the text of a call's arguments."""
    return eval("(lambda *arguments, **keywords: (arguments, keywords))({}\n)".format(given), names)


def _arguments(value):
    """(positional, by name) of what example_inputs() returned."""
    if isinstance(value, tuple) and len(value) == 2 and isinstance(value[0], (tuple, list)) and _is_named(value[1]):
        return tuple(value[0]), value[1]
    if isinstance(value, (tuple, list)):
        return tuple(value), {}
    return ((), value) if _is_named(value) else ((value,), {})


def _is_named(value):
    return isinstance(value, dict) and all(isinstance(key, str) for key in value)


# gradients


def _is_differentiable(torch, leaf):
    return isinstance(leaf, torch.Tensor) and (leaf.is_floating_point() or leaf.is_complex())


def _with_grad(torch, values, wanted):
    """The tensors, as leaves that ask for a gradient where it is wanted; strides and shared storage stay."""
    seen = {}

    def leaf(value):
        if not _is_differentiable(torch, value):
            return value
        if id(value) not in seen:
            seen[id(value)] = value.detach().requires_grad_(wanted)
        return seen[id(value)]

    return torch.utils._pytree.tree_map(leaf, values)


def _asked(torch, model, arguments, keywords):
    """What gradients are taken of, by name."""
    asked = {}
    for path, leaf in torch.utils._pytree.tree_flatten_with_path((arguments, keywords))[0]:
        if _is_differentiable(torch, leaf) and leaf.requires_grad:
            asked["input" + torch.utils._pytree.keystr(path[1:])] = leaf
    if isinstance(model, torch.nn.Module):
        asked.update((name, tensor) for name, tensor in model.named_parameters() if tensor.requires_grad)
    return asked


def _gradients(torch, outputs, asked):
    """Of a fixed random weighting of all outputs; a gradient that is not there counts as zero."""
    roots = [leaf for leaf in outputs if _is_differentiable(torch, leaf) and leaf.requires_grad]
    if not roots or not asked:
        return {name: torch.zeros_like(leaf).detach() for name, leaf in asked.items()}
    generator = torch.Generator().manual_seed(SEED + 1)
    weights = [torch.randn(root.shape, generator=generator, dtype=root.dtype).to(root.device) for root in roots]
    found = torch.autograd.grad(roots, list(asked.values()), weights, allow_unused=True)
    pairs = zip(asked.items(), found)
    return {name: torch.zeros_like(leaf).detach() if grad is None else grad for (name, leaf), grad in pairs}


# the comparison


def _plain(torch, leaf):
    """A tensor or a plain value; of anything else only the type is compared."""
    if isinstance(leaf, torch.Tensor):
        return leaf.detach()
    is_plain = leaf is None or isinstance(leaf, (bool, int, float, complex, str))
    return leaf if is_plain else "a {}".format(type(leaf).__name__)


def _compared(torch, expected, produced):
    """The difference that passes its tolerance by most; nothing where all are within it."""
    if expected["structure"] != produced["structure"] or expected["outputs"].keys() != produced["outputs"].keys():
        return _differs("the outputs", "their structure is not eager's", None, None)
    pairs = [(label, value, produced["outputs"][label]) for label, value in expected["outputs"].items()]
    for name, value in expected["gradients"].items():
        if name in produced["gradients"]:
            pairs.append(("the gradient of " + name, value, produced["gradients"][name]))
    found = [_difference(torch, *pair) for pair in pairs]
    worst = max((one for one in found if one is not None), key=lambda one: one[0], default=None)
    return {} if worst is None else worst[1]


def _differs(where, what, largest, allowed):
    told = {"where": where, "what": what, "largest": largest, "allowed": allowed}
    return {"status": "differs", "difference": told}


def _difference(torch, label, expected, produced):
    """(how far it is out, the answer); None where it is within its tolerance."""
    if not isinstance(expected, torch.Tensor) or not isinstance(produced, torch.Tensor):
        is_same = type(expected) is type(produced) and (expected == produced or expected != expected)
        return None if is_same else (math.inf, _differs(label, "{} for {}".format(produced, expected), None, None))
    for what in ("shape", "dtype", "device"):
        ours, theirs = getattr(expected, what), getattr(produced, what)
        if ours != theirs:
            text = "{} {} for {}".format(what, list(theirs) if what == "shape" else theirs, ours)
            return math.inf, _differs(label, text.replace("torch.Size(", "").rstrip(")"), None, None)
    return _numeric(torch, label, expected, produced)


def _numeric(torch, label, expected, produced):
    relative, absolute = TOLERANCES.get(str(expected.dtype).replace("torch.", ""), (0.0, 0.0))
    wide = torch.complex128 if expected.is_complex() else torch.float64
    if expected.numel() == 0 or torch.equal(expected, produced):
        return None
    expected, produced = expected.to(wide), produced.to(wide)
    same = (expected == produced) | (expected.isnan() & produced.isnan())
    finite = expected.abs()[expected.abs().isfinite()]
    allowed = absolute + relative * (finite.max().item() if finite.numel() else 0.0)
    gaps = (expected - produced).abs().nan_to_num(nan=math.inf).masked_fill(same, 0.0)
    largest = gaps.max().item()
    if largest <= allowed:
        return None
    at = [int(i) for i in torch.unravel_index(gaps.argmax(), gaps.shape)]
    text = "{!r} for {!r}".format(produced[tuple(at)].item(), expected[tuple(at)].item())
    place = "{} at {}".format(label, at) if at else label
    return largest / max(allowed, 1e-300), _differs(place, text, None if math.isinf(largest) else largest, allowed)


# what went wrong


class Failure:
    """What was raised, told as the user's program would see it."""

    def __init__(self, stopped, graphs, request):
        self.request = request
        self.graphs = graphs
        self.outer = stopped.error
        self.text = str(stopped.error)
        self.stack = _stack(stopped.error)
        is_compiler = type(stopped.error).__module__.startswith(("torch._dynamo", "torch._inductor"))
        self.stage = "compile" if is_compiler and stopped.stage in ("forward", "backward") else stopped.stage

    def told(self):
        node = _interpreted(self.outer)
        nodes, operation = self._aliased() or self._generated() or ((), self._named() or self._in_cpp())
        if operation is None and node is not None:
            operation = _bare(str(node.target))
        kind, message = self._innermost()
        return {
            "stage": self.stage,
            "type": kind,
            "message": _message(message),
            "operation": operation,
            "frames": self._places(nodes, operation, node, _is_users)
            or self._places(nodes, operation, node, _is_not_torchs),
        }

    def _places(self, nodes, operation, node, is_wanted):
        """The frames that lead to it, out of files that are wanted, from whoever tells of some first."""
        told = itertools.chain(
            self._sections(),
            [self._of_nodes(nodes, operation)],
            [_frames(node.stack_trace or "")] if node is not None else [],
            [self.stack],
        )
        wanted = ([one for one in frames if is_wanted(one["path"], self.request)] for frames in told)
        return next(filter(None, wanted), [])

    def _innermost(self):
        """(class, text) of what was raised first, out of the compilers' wrappings."""
        inner = getattr(self.outer, "inner_exception", None) or self.outer
        faked = _FAKED.match(str(inner))
        if faked:
            return faked[1], faked[3]
        lowered = re.match(r"(?:LoweringException: )?(\w+(?:Error|Exception)): (.*)", str(inner), re.S)
        if lowered and type(inner).__name__ in ("InductorError", "LoweringException"):
            return lowered[1], lowered[2]
        return type(inner).__name__, str(inner)

    def _named(self):
        """The operation that the compiler's own text names."""
        found = next((match for match in (p.search(self.text) for p in _OPERATIONS) if match), None)
        return _bare(found[1]) if found else None

    def _in_cpp(self):
        """The operation that was called from C++, which is the last of those on its stack."""
        called = _CALLED_IN_CPP.findall(self.text)
        return called[-1] if called else None

    def _aliased(self):
        """The graph's outputs, where one that is a view was made again of its base, outside of the graph."""
        if not self.graphs or all(frame["function"] != "gen_alias_from_base" for frame in self.stack):
            return None
        returned = next(node for node in reversed(self.graphs[-1].nodes) if node.op == "output")
        return tuple(node.name for node in returned.all_input_nodes), "gen_alias_from_base"

    def _generated(self):
        """(names of the graph's nodes, operation) at a line of code that Inductor wrote; None where no such ran."""
        for frame in reversed(self.stack):
            if (
                frame["function"] != "call"
                or _is_users(frame["path"], self.request)
                or "async_compile" not in "".join(linecache.getlines(frame["path"]))
            ):
                continue
            called = _GENERATED.search(frame["text"])
            above = (linecache.getline(frame["path"], line) for line in range(frame["line"], 0, -1))
            sources = next((match for match in map(_SOURCE_NODES.search, above) if match), None)
            nodes = tuple(sources[1].split(", ")) if sources else ()
            name = (called[1] or called[2]) if called else sources[2].split(", ")[-1] if sources else None
            return nodes, _bare(name) if name else None
        return None

    def _sections(self):
        """The frames that the text itself lists, under the heading of each rung's own kind."""
        return [_frames(self.text.partition(heading)[2]) for heading in _SECTIONS]

    def _of_nodes(self, names, operation):
        """The frames that a recorded graph keeps for those nodes, or for its only nodes with that operation."""
        recorded = [node for graph in self.graphs for node in graph.nodes if node.stack_trace]
        nodes = [node for node in recorded if node.name in names]
        if not nodes and operation is not None:
            written = operation.replace(".", "_")  # as C++ spells it
            nodes = [node for node in recorded if _bare(str(node.target)).replace(".", "_") == written]
        traces = list(dict.fromkeys(node.stack_trace for node in nodes))
        return _frames(traces[-1]) if traces and (names or len(traces) == 1) else []


def _interpreted(error):
    """The node of a graph that Inductor, which runs graphs to compile them, was at."""
    found = None
    while error is not None:
        for frame, _ in traceback.walk_tb(error.__traceback__):
            node = frame.f_locals.get("n") if frame.f_code.co_name == "run_node" else None
            found = node if hasattr(node, "stack_trace") else found
        error = error.__cause__
    return found


def _bare(operation):
    """`aten.view.default`, `torch.ops.aten.view` and `<built-in method view ...>` are all `view`."""
    built_in = re.match(r"<\S+ (?:\S+ )?'?(\w+)", operation)
    named = re.match(r"<built-in (?:method|function) (\w+)", operation) or re.match(r"<function (\w+)", operation)
    if named or built_in:
        return (named or built_in)[1]
    parts = operation.replace("torch.ops.", "").split(".")
    parts = parts[1:] if len(parts) > 1 else parts
    return ".".join(part for part in parts if part not in ("default", "Tensor"))


def _message(text):
    cut = _ENDS.split(text, maxsplit=1)[0].strip()
    return cut if len(cut) <= MESSAGE_CHARACTERS else cut[:MESSAGE_CHARACTERS] + " ..."


def _first_line(text):
    return next((line.strip() for line in text.splitlines() if line.strip()), "no message")


def _stack(error):
    frames = []
    while error is not None:
        found = traceback.extract_tb(error.__traceback__)
        frames = [_frame(one.filename, one.lineno, one.name) for one in found] + frames
        error = error.__cause__
    return frames


def _frames(text):
    return [_frame(m["path"], int(m["line"]), m["function"]) for m in _FRAME.finditer(text)]


def _frame(path, line, function):
    text = linecache.getline(path, line or 0).strip()
    return {"path": path, "line": line or 0, "function": (function or "").strip(), "text": text}


def _is_users(path, request):
    """Neither torch, nor Python, nor an installed package other than the target's own, nor generated code."""
    own = (Path.cwd() / _parts(request["target"])[0]).resolve().parent
    if "site-packages" in own.parts:
        return own in Path(path).resolve().parents and not _is_generated(path)
    return _is_not_torchs(path, request) and not _is_installed(Path(path).resolve())


def _is_not_torchs(path, request):
    """The user's, or an installed package's that is on neither torch's side nor Python's."""
    real = Path(path).resolve()
    if _is_generated(path) or _HERE in real.parents:
        return False
    folders = _cache_folders()
    if not _is_installed(real):
        folders.append(Path(sysconfig.get_path("stdlib")))  # which has the installed packages beneath it
    if "torch" in sys.modules:
        folders.append(Path(sys.modules["torch"].__file__).parent)
    return not any(folder.resolve() in real.parents for folder in folders)


def _is_generated(path):
    return path.startswith("<") or ":codegen(" in path


def _is_installed(real):
    return "site-packages" in real.parts or "dist-packages" in real.parts


def _cache_folders():
    with contextlib.suppress(ImportError, AttributeError):
        from torch._inductor.runtime.cache_dir_utils import cache_dir

        return [Path(cache_dir())]
    return []


if __name__ == "__main__":
    sys.modules["__main__"] = types.ModuleType("__main__")
    main(sys.argv.pop(1))
