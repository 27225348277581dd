"""Records what the shape calls of a program meet: sizes, strides, refusals, batches.

    PY -I -S record.py --output FILE -- script.py args | -m module args

starts the program in this interpreter, as itself: the recorder comes in by a `sitecustomize` on PYTHONPATH, which
hands over to the user's own and leaves `sys.path`.  Each process that imports torch, subprocesses too, appends JSON
lines to a file of its own, `FILE.<pid>.<n>`; such files put one after the other are a valid file again.

The methods of torch.Tensor, and the functions of torch, are replaced by wrappers that call the originals.  Modes of
torch would break graphs, see one thread and cost each op; a profiler sees no arguments.
"""

from __future__ import annotations

import atexit
import gc
import os
import sys
import time

# Not `json`, `threading`, `weakref` and `hashlib`: a module of the user's may have that name, and is to find it free.
from _json import encode_basestring_ascii
from _thread import allocate_lock
from _weakref import ref

VERSION = 1
METHODS = ("view", "view_as", "reshape", "reshape_as", "flatten", "contiguous", "bmm")
FUNCTIONS = ("bmm", "reshape", "flatten", "view_as_complex")
COUNTS = ("calls", "traced", "refused", "would_be_refused", "dtype", "written")
EXAMPLES = 8
SIZES = 16
"""Sizes kept for each dim, of the smallest; the largest is kept too."""
LAYOUTS = 256
"""Layouts that a site knows again; what comes after is looked at anew each time."""
PENDING = 32
CHECKS = 8
"""Later calls at which a returned view is looked at for a write."""
SECONDS = 2.0
OUTPUT = "TORCH_CODEMOD_RECORD"

_REFUSALS = (
    "view size is not compatible with",
    "Cannot view a tensor with shape",  # the same under a fake tensor
    "must be 1 to view",  # dtype views
    "must have a last dimension with stride 1",  # view_as_complex, and the next
    "stride in all dimensions except the last",
    "must be divisible by 2",
)
_INVALID = ("is invalid for input of size", "cannot reshape tensor of 0 elements")

_NAME = "<torch-codemod trace>"
"""The recorder's file in tracebacks: coverage leaves out what is in no file."""

_SITECUSTOMIZE = """\
import sys
_record, _folder = {record!r}, {folder!r}
sys.path[:] = [path for path in sys.path if path != _folder]
sys.modules.pop("sitecustomize", None)
if sys.version_info >= (3, 9):
    try:
        with open(_record, "rb") as _file:
            _code = compile(_file.read(), {name!r}, "exec")
        exec(_code, {{"__name__": "_torch_codemod_record", "__file__": _record}})
    except Exception:
        pass
import sitecustomize
"""


class _File:
    """A source file of the user's: its real path, and the hash of its bytes when the first call came."""

    __slots__ = ("hash", "path")

    def __init__(self, path, hash):
        self.path = path
        self.hash = hash


class _Site:
    """A call in the source, and what it met."""

    __slots__ = (
        "batch",
        "code",
        "examples",
        "file",
        "flushed",
        "invalid",
        "known",
        "operation",
        "place",
        "sizes",
        *COUNTS,
    )

    def __init__(self, code, file, place, operation):
        self.code = code  # held: its id is the key
        self.file = file
        self.place = place
        self.operation = operation
        self.calls = self.traced = self.refused = self.would_be_refused = self.dtype = self.written = 0
        self.flushed = (0,) * len(COUNTS)
        self.known = {}
        self.sizes = []
        self.examples = []
        self.invalid = []
        self.batch = None


class _Recorder:
    """All that this process has seen.

    Nothing waits for a lock: a fork or a signal handler may come in between.
    """

    def __init__(self, output, folder):
        self.output = output
        self.folder = folder
        self.inside = ()
        self.files = {}
        self.tables = []
        self.pending = []
        self.errors = 0
        self.error = None
        self.ticks = 0
        self.flushed_at = time.monotonic()
        self.pid = os.getpid()
        self.path = None
        self.lock = allocate_lock()

    def failed(self, error):
        """An error of ours: never the user's, counted."""
        self.errors += 1
        if self.error is None:
            self.error = f"{type(error).__name__}: {error}"

    # What a wrapper reports.

    def passed(self, table, operation, frame, args, kwargs, result):
        """A call that returned."""
        receiver = args[0] if args else kwargs.get("input")
        if type(receiver) not in self.plain and not self._is_tensor(receiver):
            return
        site = table.get((id(frame.f_code), frame.f_lasti)) or self._new_site(table, operation, frame)
        if site is None:
            if type(receiver).__name__ == "FakeTensor":
                self._traced(table, operation, frame, args, kwargs, result, None)
            return
        site.calls += 1
        if self.pending and not self.are_modes_active():  # a mode would see us ask
            self._check_pending()
        self._look(site, receiver, args, kwargs, result)
        if site.calls & (site.calls - 1) == 0:
            self._watch(site, receiver, result)
        self.ticks += 1
        if site.calls == 1 or (not self.ticks & 63 and time.monotonic() - self.flushed_at > SECONDS):
            self.flush()

    def raised(self, table, operation, frame, args, kwargs, error):
        """A call that torch refused, or that was wrong in itself."""
        receiver = args[0] if args else kwargs.get("input")
        if not self._is_tensor(receiver):
            return
        site = table.get((id(frame.f_code), frame.f_lasti)) or self._new_site(table, operation, frame)
        if site is None:
            if type(receiver).__name__ == "FakeTensor":
                self._traced(table, operation, frame, args, kwargs, None, error)
            return
        site.calls += 1
        self._look_at_error(site, receiver, args, kwargs, error)
        if site.calls == 1 or site.refused == 1:
            self.flush()

    def _is_tensor(self, receiver):
        return issubclass(type(receiver), self.tensor)

    def _new_site(self, table, operation, frame):
        """None for a call by torch itself, or from text that is in no file."""
        code = frame.f_code
        file = self._file(code.co_filename)
        if file is None:
            return None
        return table.setdefault((id(code), frame.f_lasti), _Site(code, file, _place(frame), operation))

    def _file(self, name):
        try:
            return self.files[name]
        except KeyError:
            pass
        file = self._opened(name)
        if file is not None or len(self.files) < 4096:  # generated names are without end
            self.files[name] = file
        return file

    def _opened(self, name):
        path = os.path.realpath(os.path.join(self.folder, name))
        if path.startswith(self.inside) or name.startswith("<") or not os.path.isfile(path):
            return None
        with _open(path, "rb") as file:
            return _File(path, _sha256(file.read()))

    # What dynamo traces: the caller is torch, the user's instruction is in the translator.

    def _traced(self, table, operation, frame, args, kwargs, result, error):
        found = _translated(frame)
        if found is None:
            return
        code, offset, place = found
        file = self._file(code.co_filename)
        if file is None:
            return
        key = (id(code), offset)
        site = table.get(key)
        if site is None:
            site = table.setdefault(key, _Site(code, file, place, operation))
        site.traced += 1
        if error is None:
            self._look(site, args[0], args, kwargs, result)
        else:
            self._look_at_error(site, args[0], args, kwargs, error)
        if site.traced == 1:
            self.flush()

    # What is kept of a call.

    def _look(self, site, receiver, args, kwargs, result):
        outcome = "view"
        if site.operation == "view" and ("dtype" in kwargs or type(args[-1]) is self.dtype):
            site.dtype += 1
            outcome = "dtype"
        layout = self._layout(receiver, result)
        if layout is None:
            return
        is_refused = site.known.get(layout)
        if is_refused is None:
            is_refused = self._learn(site, layout, outcome)
        site.would_be_refused += is_refused

    def _layout(self, receiver, result):
        """(sizes, strides, target); None where they cannot be read without side effects."""
        if type(receiver) in self.plain and not self.are_modes_active() and self.tracing_state() is None:
            return receiver.shape, receiver.stride(), result.shape
        if self._is_opaque(type(receiver)) or not self._is_tensor(result):
            return None
        return _hinted(self._aside(receiver, result))

    def _is_opaque(self, kind):
        """A class whose sizes are answered by code of the user's."""
        dispatch = getattr(kind, "__torch_dispatch__", None)
        return kind.__name__ != "FakeTensor" and dispatch is not None and dispatch is not self.no_dispatch

    def _aside(self, receiver, result):
        """Read with neither `__torch_function__`, modes nor the tracer of torch.jit looking on."""
        state = self.tracing_state()
        if state is not None:
            self.set_tracing_state(None)
        try:
            with self.disable_torch_function():
                return tuple(receiver.shape), tuple(receiver.stride()), tuple(result.shape)
        finally:
            if state is not None:
                self.set_tracing_state(state)

    def _learn(self, site, layout, outcome):
        """Whether a view of this layout is refused, as 0 or 1; kept with the sizes and, where new, as an example."""
        sizes, strides, target = (tuple(part) for part in layout)
        is_refused = 0
        if outcome != "dtype":
            if site.operation == "contiguous":
                is_refused = int(not is_contiguous(sizes, strides))
            elif site.operation in ("reshape", "reshape_as", "flatten"):
                is_refused = int(not is_view_legal(sizes, strides, target))
            if is_refused:
                outcome = "copy"
        if len(site.known) < LAYOUTS:
            site.known[layout] = is_refused
        _keep_sizes(site, sizes)
        _keep_example(site, sizes, strides, target, outcome)
        return is_refused

    def _look_at_error(self, site, receiver, args, kwargs, error):
        text = str(error)
        outcome = "error"
        if any(part in text for part in _REFUSALS):
            site.refused += 1
            outcome = "refused"
        elif any(part in text for part in _INVALID):
            outcome = "invalid"
        layout = self._layout(receiver, receiver)
        if layout is None:
            return
        sizes, strides, _ = (tuple(part) for part in layout)
        target = _asked(args[1:], kwargs)
        _keep_sizes(site, sizes)
        _keep_example(site, sizes, strides, target, outcome)
        if outcome == "invalid" and target is not None:
            _keep_invalid(site, list(target), _elements(sizes))

    # Writes that reach a returned view.

    def _watch(self, site, receiver, result):
        """Remember the version that the result shares with the receiver, where it is a view of it."""
        if len(self.pending) >= PENDING or type(receiver) is not self.tensor or type(result) is not self.tensor:
            return  # parameters too: torch.utils.swap_tensors refuses what is weakly referenced
        if self.are_modes_active() or self.tracing_state() is not None or self.is_wrapped(result):
            return
        if result.is_inference() or receiver.is_inference() or site.operation == "bmm":
            return
        if result is not receiver and not _share(receiver, result):
            return
        self.pending.append([site, ref(receiver), ref(result), result._version, CHECKS])

    def _check_pending(self):
        kept = []
        for entry in self.pending:
            site, receiver, result, version, checks = entry
            alive = result()
            is_leaf = False
            if alive is None:
                alive = receiver()
                is_leaf = alive is not None and alive.requires_grad and alive.is_leaf  # an optimizer's step
            if alive is None or is_leaf:
                continue
            if alive._version != version:
                site.written += 1
            elif checks > 1:
                entry[4] = checks - 1
                kept.append(entry)
        self.pending = kept

    # The file.

    def flush(self, end=None):
        """Append what came since the last time; another thread that is at it does it for both."""
        if not self.lock.acquire(timeout=0 if end is None else 1):
            return
        try:
            self._flush(end)
        finally:
            self.lock.release()

    def _flush(self, end):
        self.flushed_at = time.monotonic()
        lines = [_line(site) for table in self.tables for site in list(table.values()) if _is_dirty(site)]
        if end is not None:
            if self.path is None and not lines and not self.errors:
                return
            lines.append(_dumps({"end": end, "errors": self.errors, "error": self.error}))
        if not lines:
            return
        if self.path is None:
            lines.insert(0, self.header)
        data = ("\n".join(lines) + "\n").encode("ascii")
        handle = self._handle()
        try:
            while data:
                data = data[_write(handle, data) :]
        finally:
            _close(handle)

    def _handle(self):
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_BINARY", 0)
        if self.path is not None:
            return _os_open(self.path, flags, 0o666)
        for number in range(10_000):
            path = f"{self.output}.{self.pid}.{number}"
            try:
                handle = _os_open(path, flags | os.O_EXCL, 0o666)
            except FileExistsError:
                continue
            self.path = path
            return handle
        raise OSError("no free name")

    def finish(self):
        """At exit: what is left, and the last line."""
        try:
            if self.pending and not self.are_modes_active():
                self._check_pending()
            self.flush(end="exit")
        except Exception:
            pass

    def forked(self):
        """In a child: what was seen so far is the parent's."""
        self.pid = os.getpid()
        self.path = None
        self.lock = allocate_lock()
        self.errors = 0
        self.pending = []
        for table in self.tables:
            table.clear()

    # torch.

    def install(self, torch):
        """Put the wrappers in place, for good."""
        self._take(torch)
        functions = _dict_of(type(torch._C._VariableFunctions))
        for name in METHODS:
            setattr(torch.Tensor, name, self._wrapper(torch, name, getattr(torch.Tensor, name), f"Tensor.{name}"))
        for name in FUNCTIONS:
            original = getattr(torch, name)
            wrapper = self._wrapper(torch, name, original, name)
            # `__torch_function__` gets the function from here: it is to be the one that `torch.bmm` names.
            if functions.get(name) is original or getattr(functions.get(name), "__func__", None) is original:
                functions[name] = staticmethod(wrapper)
                setattr(torch, name, wrapper)
                _let_scripts_know(torch, original, wrapper)
        sys.modules["ctypes"].pythonapi.PyType_Modified(
            sys.modules["ctypes"].py_object(type(torch._C._VariableFunctions))
        )
        self._let_swap(torch.utils)
        os.register_at_fork(after_in_child=self.forked)

    def _let_swap(self, utils):
        """`swap_tensors` refuses what is weakly referenced."""
        original = getattr(utils, "swap_tensors", None)
        if original is None:
            return

        def swap_tensors(t1, t2):
            self.pending = []
            try:
                original(t1, t2)
            except Exception:
                _hide(sys._getframe())
                raise

        swap_tensors.__module__, swap_tensors.__qualname__ = original.__module__, original.__qualname__
        swap_tensors.__doc__, swap_tensors.__wrapped__ = original.__doc__, original
        utils.swap_tensors = swap_tensors

    def _take(self, torch):
        root = os.path.dirname(torch.__file__)
        self.inside = (os.path.realpath(root) + os.sep, root + os.sep)
        self.tensor = torch.Tensor
        self.dtype = torch.dtype
        self.plain = (torch.Tensor, torch.nn.Parameter)
        self.no_dispatch = torch.Tensor.__torch_dispatch__
        self.disable_torch_function = torch._C.DisableTorchFunction
        self.are_modes_active = torch._C._len_torch_function_stack
        self.tracing_state = torch._C._get_tracing_state
        self.set_tracing_state = torch._C._set_tracing_state
        self.is_wrapped = torch._C._functorch.is_functorch_wrapped_tensor
        python = ".".join(str(part) for part in sys.version_info[:3])
        self.header = _dumps({"torch-codemod-evidence": VERSION, "torch": str(torch.__version__), "python": python})

    def _wrapper(self, torch, name, original, qualified):
        table = {}
        self.tables.append(table)
        passed, raised, is_compiling, here = self.passed, self.raised, _is_compiling(torch), sys._getframe
        recorder = self

        def wrapper(*args, **kwargs):
            __tracebackhide__ = True  # of pytest, where coverage traces
            if is_compiling():  # dynamo knows the call by the receiver's method, not this one
                return getattr(args[0], name)(*args[1:], **kwargs)
            try:
                result = original(*args, **kwargs)
            except Exception as error:
                try:
                    raised(table, name, here(1), args, kwargs, error)
                    _hide(here())
                except Exception as own:
                    recorder.failed(own)
                raise
            try:
                passed(table, name, here(1), args, kwargs, result)
            except Exception as own:
                recorder.failed(own)
            return result

        wrapper.__name__, wrapper.__qualname__, wrapper.__module__ = name, qualified, "torch"
        wrapper.__doc__, wrapper.__wrapped__ = original.__doc__, original
        return wrapper


def _is_compiling(torch):
    compiler = getattr(torch, "compiler", None)
    return getattr(compiler, "is_dynamo_compiling", None) or (lambda: False)


def _dict_of(kind):
    """The dict behind a class that torch defines in C."""
    return next(item for item in gc.get_referents(kind.__dict__) if type(item) is dict)


def _let_scripts_know(torch, original, wrapper):
    """torch.jit.script finds the operator by the function's id, in a table that may be made already."""
    builtins = torch.jit._builtins
    operator = builtins._find_builtin(original)
    if operator is not None:
        builtins._register_builtin(wrapper, operator)


def _hide(frame):
    """Take the wrapper's frame out of the traceback, once the exception has reached the caller.

    A trace function of the caller's frame is told of the exception first; it goes at once.  Not where a debugger
    or coverage already traces.
    """
    caller = frame.f_back
    if caller is None or sys.gettrace() is not None:
        return

    def cut(at, event, arg):
        sys.settrace(None)
        caller.f_trace = None
        if at is caller and event == "exception":
            traceback = arg[2]
            following = traceback.tb_next
            if following is not None and following.tb_frame.f_code is frame.f_code:
                traceback.tb_next = following.tb_next

    caller.f_trace = cut
    sys.settrace(_trace_nothing)


def _trace_nothing(frame, event, arg):
    return None


# Places.


def _place(frame):
    """(line, end line, column, end column) of the call; columns are in bytes here, None where not known."""
    code = frame.f_code
    if hasattr(code, "co_positions"):
        for number, position in enumerate(code.co_positions()):
            if number == frame.f_lasti // 2:
                return _known_place(position, frame.f_lineno)
    return (frame.f_lineno, None, None, None)


def _known_place(position, line):
    start, end, column, end_column = position
    if None in position:
        return (start or line, None, None, None)
    return (start, end, column, end_column)


def _translated(frame):
    """(code, offset, place) of the instruction that dynamo is at, where it is propagating fake tensors."""
    is_propagating = False
    while frame is not None:
        if frame.f_code.co_name == "get_fake_value":
            is_propagating = True
        translator = frame.f_locals.get("self") if is_propagating and frame.f_code.co_name == "step" else None
        instruction = getattr(translator, "current_instruction", None)
        if instruction is not None and translator.f_code.co_filename != _NAME:
            return _instruction_place(translator, instruction)
        frame = frame.f_back
    return None


def _instruction_place(translator, instruction):
    if "CALL" not in instruction.opname:
        return None
    code, line, positions = translator.f_code, translator.lineno, instruction.positions
    if positions is None:
        return code, instruction.offset, (line, None, None, None)
    position = (positions.lineno, positions.end_lineno, positions.col_offset, positions.end_col_offset)
    return code, instruction.offset, _known_place(position, line)


def _columns(site):
    """1-based columns in characters; None where they are not known."""
    line, end_line, column, end_column = site.place
    if column is None:
        return None, None
    lines = _lines(site.file.path)
    return _characters(lines[line - 1], column) + 1, _characters(lines[end_line - 1], end_column) + 1


def _lines(path):
    """The lines in UTF-8, as the compiler counts its columns."""
    if path not in _LINES:
        with _open(path, "rb") as file:
            raw = file.read()
        _LINES.clear()
        _LINES[path] = _utf8(raw).replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
    return _LINES[path]


def _utf8(raw):
    if raw.startswith(b"\xef\xbb\xbf"):
        return raw[3:]
    for line in raw.split(b"\n", 2)[:2]:
        if line.lstrip().startswith(b"#") and b"coding" in line:
            name = line.split(b"coding", 1)[1].lstrip(b":= \t").split()[0].decode("ascii", "replace")
            return raw.decode(name.rstrip("-*;"), "replace").encode("utf-8")
    return raw


def _characters(line, column):
    return len(line[:column].decode("utf-8", "replace"))


_LINES = {}


# Values.


def _asked(args, kwargs):
    """The sizes that a call asks for; None where it does not name them."""
    given = args[0] if args else kwargs.get("size", kwargs.get("shape", kwargs.get("other")))
    if hasattr(given, "shape"):
        given = given.shape
    elif len(args) > 1 or type(given) is int:
        given = args or (given,)
    if not isinstance(given, (tuple, list)):
        return None
    sizes = tuple(_hint(size) for size in given)
    return None if None in sizes else sizes


def _hint(size):
    """The number behind a symbolic size, without a guard."""
    if type(size) is int:
        return size
    hint = getattr(getattr(size, "node", None), "hint", None)
    return hint if type(hint) is int else None


def _hinted(layout):
    parts = tuple(tuple(_hint(size) for size in part) for part in layout)
    return None if any(None in part for part in parts) else parts


def _elements(sizes):
    count = 1
    for size in sizes:
        count *= size
    return count


def _share(receiver, result):
    return receiver.untyped_storage()._cdata == result.untyped_storage()._cdata


def is_contiguous(sizes, strides):
    """Whether the elements lie row by row; sizes of 1 and empty tensors fit any stride."""
    expected = 1
    for size, stride in zip(reversed(sizes), reversed(strides)):
        if size != 1:
            if stride != expected:
                return 0 in sizes
            expected *= size
    return True


def is_view_legal(sizes, strides, target):
    """Whether a tensor of these strides can be seen as one of `target` sizes, which hold as many elements.

    Source: aten/src/ATen/TensorUtils.cpp, computeStride_impl.
    """
    if 0 in sizes or not sizes:
        return True
    dim = len(target) - 1
    base = strides[-1]
    held = wanted = 1
    for place in range(len(sizes) - 1, -1, -1):
        held *= sizes[place]
        is_end = place == 0 or (sizes[place - 1] != 1 and strides[place - 1] != held * base)
        if not is_end:
            continue
        while dim >= 0 and (wanted < held or target[dim] == 1):
            wanted *= target[dim]
            dim -= 1
        if wanted != held:
            return False
        if place > 0:
            base = strides[place - 1]
            held = wanted = 1
    return dim == -1


def _keep_sizes(site, sizes):
    while len(site.sizes) < len(sizes):
        site.sizes.append(set())
    for seen, size in zip(site.sizes, sizes):
        if size not in seen:
            seen.add(size)
            if len(seen) > SIZES:
                seen.remove(max(seen - {max(seen)}))
    if site.operation == "bmm" and sizes:
        low, high = site.batch or (sizes[0], sizes[0])
        site.batch = (min(low, sizes[0]), max(high, sizes[0]))


def _keep_example(site, sizes, strides, target, outcome):
    example = (sizes, strides, target, outcome)
    if example in site.examples:
        return
    if len(site.examples) < EXAMPLES:
        site.examples.append(example)
    elif outcome not in [kept[3] for kept in site.examples]:
        site.examples[-1] = example


def _keep_invalid(site, target, elements):
    pair = [target, elements]
    if len(site.invalid) < EXAMPLES and pair not in site.invalid:
        site.invalid.append(pair)


def _counts(site):
    return tuple([getattr(site, name) for name in COUNTS])


def _is_dirty(site):
    return _counts(site) != site.flushed


def _line(site):
    """The site as a line, with what its counts have grown since the last."""
    column, end_column = _columns(site)
    now = _counts(site)
    counts = {name: new - old for name, new, old in zip(COUNTS, now, site.flushed)}
    site.flushed = now
    line, end_line = site.place[:2]
    place = {"path": site.file.path, "hash": site.file.hash, "line": line, "end_line": end_line}
    examples = [dict(zip(("sizes", "strides", "target", "outcome"), kept)) for kept in list(site.examples)]
    return _dumps(
        {
            **place,
            "column": column,
            "end_column": end_column,
            "operation": site.operation,
            **counts,
            "invalid": [{"target": target, "elements": elements} for target, elements in list(site.invalid)],
            "sizes": [sorted(seen) for seen in list(site.sizes)],
            "examples": examples,
            "batch": site.batch,
        }
    )


def _dumps(value):
    """JSON of the few kinds of value there are here."""
    if value is None:
        return "null"
    if isinstance(value, str):
        return encode_basestring_ascii(value)
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_dumps(key)}: {_dumps(item)}" for key, item in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join([_dumps(item) for item in value]) + "]"
    return str(int(value))


# Own copies: the user may mock what the modules hold.
_open = open
_os_open, _write, _close = os.open, os.write, os.close


def _sha256(data):
    try:
        from _sha2 import sha256
    except ImportError:
        from _sha256 import sha256
    return sha256(data).hexdigest()


# Coming in.


class _Finder:
    """Lets torch be imported as ever, and the recorder in just after."""

    def __init__(self, recorder):
        self.recorder = recorder

    def find_spec(self, name, path=None, target=None):
        if name != "torch":
            return None
        for finder in sys.meta_path:
            find = getattr(finder, "find_spec", None)
            spec = find(name, path, target) if finder is not self and find is not None else None
            if spec is not None:
                if spec.loader is not None:
                    spec.loader = _Loader(spec.loader, self)
                return spec
        return None

    def found(self, torch):
        if self in sys.meta_path:
            sys.meta_path.remove(self)
            try:
                self.recorder.install(torch)
            except Exception as own:
                self.recorder.failed(own)


class _Loader:
    def __init__(self, loader, finder):
        self.loader = loader
        self.finder = finder

    def __getattr__(self, name):
        return getattr(self.loader, name)

    def create_module(self, spec):
        return self.loader.create_module(spec)

    def exec_module(self, module):
        module.__spec__.loader = module.__loader__ = self.loader
        self.loader.exec_module(module)
        self.finder.found(module)

    # Python takes frames of importlib's file out of the traceback where torch cannot be imported.
    exec_module.__code__ = exec_module.__code__.replace(co_filename="<frozen importlib._bootstrap>")


def _start(output):
    """In each process of the program, before its own first line."""
    recorder = _Recorder(output, os.getcwd())
    sys.meta_path.insert(0, _Finder(recorder))
    atexit.register(recorder.finish)  # the first to be registered is the last to run
    leave = os._exit

    def _exit(status):
        recorder.finish()
        leave(status)

    _exit.__doc__ = leave.__doc__
    os._exit = _exit


def _main(arguments):
    """Start the program in this process's place."""
    output, command = os.path.abspath(arguments[1]), arguments[3:]
    folder = output + ".site"
    os.makedirs(folder, exist_ok=True)
    with _open(os.path.join(folder, "sitecustomize.py"), "w", encoding="utf-8") as file:
        file.write(_SITECUSTOMIZE.format(record=os.path.abspath(__file__), folder=folder, name=_NAME))
    paths = [folder, os.environ["PYTHONPATH"]] if os.environ.get("PYTHONPATH") else [folder]
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join(paths), **{OUTPUT: output})
    sys.stdout.flush()
    sys.stderr.flush()
    if os.name == "nt":  # exec would come back to the shell at once
        import subprocess

        sys.exit(subprocess.call([sys.executable, *command], env=environment))
    os.execve(sys.executable, [sys.executable, *command], environment)


if __name__ == "__main__":
    _main(sys.argv[1:])
elif OUTPUT in os.environ:
    _start(os.environ[OUTPUT])
