# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
"""What a test does with graphs and memory, of its source, in the order in which it runs.

The idea: an interpreter over names. A value is a Memory (one tensor's storage; views and assignments share it, a clone
refers to what it was cloned from), a function of this file, a graph, or nothing known. Branches are walked one after the
other and loops twice, so that a write at the end of a loop's body comes before the replay of the next round. Functions of
the file are walked where they are called, with their parameters bound.
"""

import ast
import re

MOST_CALLS = 400  # of functions of the file, in a test
MOST_STATEMENTS = 20_000  # walked of a test; what comes after is not known
DEPTH = 6
VIEWS = {"view", "detach", "data", "reshape", "T", "mT", "squeeze", "unsqueeze", "flatten", "transpose", "permute", "narrow",
         "expand", "view_as", "expand_as", "requires_grad_", "select", "chunk", "split", "unbind", "ravel", "real", "imag"}
CLONES = {"clone", "copy", "cpu", "numpy", "to", "float", "double", "half", "bfloat16", "contiguous", "tolist", "item", "cuda",
          "long", "int", "type", "get", "asnumpy", "deepcopy"}
CAPTURE_CONTEXT = re.compile(r"(^|\.)(cuda\.graph|graph_capture|ScopedCapture|capture_graph|cuda_graph_capture)$")
CAPTURE_BEGIN = {"capture_begin", "begin_capture"}
CAPTURE_END = {"capture_end", "end_capture"}
GRAPHED = {"make_graphed_callables"}
REPLAYS = {"replay", "capture_launch"}
UNKNOWN_CAPTURE = re.compile(r"cuda_?graph|graphed|graph_?runner|graph_?captur|captur\w*_?graph", re.IGNORECASE)
RAISES = re.compile(r"(^|\.)(raises|assertRaises|assertRaisesRegex|warns)$")
COMPARES = re.compile(r"(^|_)(all_?close|equal|close|isclose|array_equal|almost_equal|allequal|same|match|eq)s?$|^assert"
                      r"|assert_|^(check|verify|compare|expect|validate|ensure)(_|$|[A-Z])|(_|^)(diff|error)$",
                      re.IGNORECASE)
DROPPED = {"allclose", "equal", "isclose", "array_equal", "is_close", "eq"}
HARMLESS = {"print", "synchronize", "collect", "empty_cache", "wait_stream", "wait_event", "record", "sleep", "append", "extend",
            "debug", "info", "warning", "manual_seed", "seed", "set_device", "range_push", "range_pop", "reset", "eval", "train",
            "write", "flush", "enable_debug_mode", "debug_dump", "add", "reset_peak_memory_stats", "instantiate"}
SHAPES = {"shape", "dtype", "device", "ndim", "is_cuda", "requires_grad", "layout"}
SHAPE_CALLS = {"len", "size", "dim", "numel", "isinstance", "type", "isfinite", "isnan", "isinf", "is_contiguous", "hasattr",
               "callable", "stride", "data_ptr", "id"}
SKIPS = {"skip", "skipTest", "SkipTest", "importorskip"}


class TooLong(Exception):
    """A test with more statements than are walked."""


class Memory:
    """A tensor's storage. `of`: what it was cloned from. `captured`: made by the captured work."""

    def __init__(self, captured=False, of=None, statement=0, line=0):
        self.captured, self.of, self.statement, self.line = captured, of, statement, line

    def root(self):
        found = self
        while found.of is not None:
            found = found.of
        return found


class Function:
    def __init__(self, node, scope, owner=None):
        self.node, self.scope, self.owner = node, scope, owner


class Graph:
    """A graph object, or a callable that replays one."""

    def __init__(self, is_callable=False):
        self.is_callable = is_callable


class Capture:
    def __init__(self, line, certain, expects_failure):
        self.line, self.certain, self.expects_failure = line, certain, expects_failure


class Replay:
    """`written`: the memories written between the last capture and it; None among them for a write that is not known."""

    def __init__(self, line, written):
        self.line, self.written = line, written


class Comparison:
    """`pairs`: (left, right, whether both are one expression) of memories; `weak`: of shapes alone; `replays` before it."""

    def __init__(self, node, pairs, weak, replays, captured):
        self.line, self.node, self.pairs, self.weak = node.lineno, node, pairs, weak
        self.replays, self.after_capture = replays, captured


def dotted(node):
    """'self.out', "case['out']"; None for what is no such chain."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        base = dotted(node.value)
        return None if base is None else f"{base}.{node.attr}"
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str):
        base = dotted(node.value)
        return None if base is None else f"{base}[{node.slice.value!r}]"
    return None


def last_name(node):
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


class Walk:
    def __init__(self, tree, owner, function):
        self.function, self.owner = function, owner
        self.module = {node.name: Function(node, None) for node in tree.body
                       if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))}
        self.methods = {node.name: Function(node, None, owner) for node in (owner.body if owner else [])
                        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))}
        self.scopes = [{}]
        self.captures, self.replays, self.comparisons = [], [], []
        self.dropped, self.swallowed, self.skips = [], [], []
        self.calls_before, self.calls_captured = {}, {}
        self.written = []  # since the last capture
        self.in_capture = self.raising = self.conditional = 0
        self.graph_escapes = self.unknown_graph_call = False
        self.statement = self.num_calls = 0
        self.memo = {}
        self.returns = [None]
        try:
            self._enter(function)
        except TooLong:
            self.graph_escapes = True
        self._decorators(function.decorator_list + (owner.decorator_list if owner else []))
        self.says_graph = self._says_graph()
        # A replay without any capture is not of graphs, as that of a buffer.
        self.is_of_capture = any(capture.certain for capture in self.captures) or self.says_graph or (
            bool(self.replays) and self.unknown_graph_call)

    def _enter(self, function):
        for argument in _arguments(function.args):
            self.scopes[-1][argument] = Memory()
            if UNKNOWN_CAPTURE.search(argument):
                self.unknown_graph_call = True
        self._block(function.body)

    def _says_graph(self):
        text = f"{self.owner.name if self.owner else ''} {self.function.name} {ast.get_docstring(self.function) or ''}"
        return re.search(r"cuda[_ ]?graphs?(?![a-z])|CudaGraph|captur\w* .{0,20}cuda graph", text,
                         re.IGNORECASE) is not None

    def _decorators(self, decorators):
        for decorator in decorators:
            call = decorator.func if isinstance(decorator, ast.Call) else decorator
            name = dotted(call) or ""
            if name.endswith("mark.skip") or name in ("unittest.skip", "skip"):
                self.skips.append((self.function.lineno, "is skipped always"))
            elif name.endswith("mark.skipif") or name in ("unittest.skipIf", "skipIf"):
                condition = decorator.args[0] if isinstance(decorator, ast.Call) and decorator.args else None
                if isinstance(condition, ast.Constant) and condition.value:
                    self.skips.append((self.function.lineno, "is skipped always: the condition is a constant"))
            elif name.endswith("mark.xfail") and not _is_strict(decorator):
                self.skips.append((self.function.lineno, "may fail: xfail without strict=True passes either way"))

    # --- Statements --------------------------------------------------------------------------------------------------

    def _block(self, statements):
        for statement in statements:
            self.statement += 1
            if self.statement > MOST_STATEMENTS:
                raise TooLong
            self.memo = {}
            method = getattr(self, f"_on_{type(statement).__name__}", None)
            if method is not None:
                method(statement)
            else:
                for child in ast.iter_child_nodes(statement):
                    if isinstance(child, ast.expr):
                        self._value(child)

    def _on_FunctionDef(self, node):
        self.scopes[-1][node.name] = Function(node, self.scopes[-1])

    _on_AsyncFunctionDef = _on_FunctionDef

    def _on_ClassDef(self, node):
        pass

    def _on_Return(self, node):
        value = self._value(node.value) if node.value else None
        if isinstance(value, Graph):
            self.graph_escapes = True
        self.returns[-1] = value

    def _on_Expr(self, node):
        call = node.value
        if isinstance(call, ast.Compare) and any(isinstance(each, ast.Eq) for each in call.ops):
            self.dropped.append(node.lineno)
        if not isinstance(call, ast.Call):
            self._value(call)
            return
        name = last_name(call.func)
        self._value(call)
        if name in DROPPED and not self._is_local(call.func) and len(call.args) + isinstance(call.func, ast.Attribute) >= 2:
            self.dropped.append(node.lineno)
        elif COMPARES.search(name) and not self._is_local(call.func):
            self._compare(call, call)
        elif name not in HARMLESS and not self.in_capture and not self._is_known(call):
            self._write(None)

    def _on_Assert(self, node):
        self._compare(node, node.test)

    def _on_Assign(self, node):
        value = self._value(node.value)
        for target in node.targets:
            self._bind(target, value, node.value)

    def _on_AnnAssign(self, node):
        if node.value is not None:
            self._bind(node.target, self._value(node.value), node.value)

    def _on_AugAssign(self, node):
        self._value(node.value)
        self._write(self._value(node.target))

    def _on_If(self, node):
        self._value(node.test)
        self.conditional += 1
        self._block(node.body)
        self._block(node.orelse)
        self.conditional -= 1

    def _on_For(self, node):
        iterated = self._value(node.iter)
        for _ in range(2):
            self._bind(node.target, Memory() if not isinstance(iterated, Graph) else iterated, None)
            self._block(node.body)
        self._block(node.orelse)

    _on_AsyncFor = _on_For

    def _on_While(self, node):
        for _ in range(2):
            self._value(node.test)
            self._block(node.body)
        self._block(node.orelse)

    def _on_With(self, node):
        captures = raises = 0
        suppressing = False
        for item in node.items:
            captured, raised = self._with_item(item)
            captures, raises = captures + captured, raises + raised
            suppressing |= last_name(getattr(item.context_expr, "func", item.context_expr)) == "suppress"
        before = self._num_certain()
        self.raising += raises
        for _ in range(captures):
            self._begin_capture(node.lineno)
        self._block(node.body)
        for _ in range(captures):
            self._end_capture()
        self.raising -= raises
        if suppressing and self._num_certain() > before:
            self.swallowed.append((node.lineno, "swallowed"))

    _on_AsyncWith = _on_With

    def _with_item(self, item):
        """(whether it captures, whether it expects an exception)"""
        node = item.context_expr
        name = (dotted(node.func) or "") if isinstance(node, ast.Call) else ""
        if CAPTURE_CONTEXT.search(name) or name == "graph":
            for argument in node.args:
                self._value(argument)
            if item.optional_vars is not None:
                self._bind(item.optional_vars, Graph(), None)
            return 1, 0
        value = self._value(node)
        if item.optional_vars is not None:
            self._bind(item.optional_vars, value, None)
        return 0, int(RAISES.search(name) is not None)

    def _on_Try(self, node):
        before = self._num_certain()
        self._block(node.body)
        if self._num_certain() > before:
            self._handlers(node.handlers)
        self.conditional += 1
        for handler in node.handlers:
            self._block(handler.body)
        self.conditional -= 1
        self._block(node.orelse)
        self._block(node.finalbody)

    _on_TryStar = _on_Try

    def _num_certain(self):
        return sum(capture.certain for capture in self.captures)

    def _handlers(self, handlers):
        for handler in handlers:
            names = {last_name(each) for each in ast.walk(handler.type)} if handler.type else {""}
            if not names & {"", "Exception", "BaseException", "RuntimeError", "AcceleratorError", "CudaError"}:
                continue
            body = [each for statement in handler.body for each in ast.walk(statement)]
            called = {last_name(each.func) for each in body if isinstance(each, ast.Call)}
            raised = [each for each in body if isinstance(each, ast.Raise)]
            skips = called & SKIPS or any(last_name(getattr(each.exc, "func", each.exc)) in SKIPS for each in raised
                                          if each.exc is not None)
            if skips:
                self.swallowed.append((handler.lineno, "skipped_on_failure"))
            elif not raised and not called & {"fail", "xfail", "exit"} and not any(
                    isinstance(each, ast.Assert) for each in body) and not any(COMPARES.search(name) for name in called):
                self.swallowed.append((handler.lineno, "swallowed"))

    # --- Names -------------------------------------------------------------------------------------------------------

    def _bind(self, target, value, node):
        if isinstance(target, (ast.Tuple, ast.List)):
            values = value if isinstance(value, list) else []
            for index, each in enumerate(target.elts):
                part = values[index] if index < len(values) else self._fresh()
                self._bind(each.value if isinstance(each, ast.Starred) else each, part, None)
            return
        key = dotted(target)
        if isinstance(target, ast.Subscript) and (key is None or key not in self.scopes[-1]):
            base = self._value(target.value)
            if isinstance(base, Memory):
                self._write(base)
            if key is None:
                return
        if isinstance(value, Graph) and not isinstance(target, ast.Name):
            self.graph_escapes = True
        if key is not None:
            self.scopes[-1][key] = value if value is not None else self._fresh()

    def _fresh(self, of=None):
        return Memory(bool(self.in_capture) and of is None, of, self.statement)

    def _find(self, key):
        for scope in (self.scopes[-1], *self._outer()):
            if key in scope:
                return scope[key]
        return None

    def _outer(self):
        scope = self.scopes[-1].get(" outer")
        while scope is not None:
            yield scope
            scope = scope.get(" outer")

    def _is_local(self, function):
        return isinstance(self._callee(function), Function)

    def _is_known(self, call):
        """Whether what the call does was seen: a function of the file, a method that writes, a replay, a capture."""
        name = last_name(call.func)
        return (self._is_local(call.func) or name in REPLAYS | CAPTURE_BEGIN | CAPTURE_END | SKIPS or name == "launch"
                or (name.endswith("_") and not name.endswith("__")) or isinstance(self._callee(call.func), Graph)
                or any(keyword.arg == "out" for keyword in call.keywords) or not (call.args or call.keywords))

    def _callee(self, node):
        key = dotted(node)
        if key is None:
            return None
        found = self._find(key)
        if found is not None and isinstance(found, (Function, Graph)):
            return found
        if found is not None:
            return None
        if key in self.module:
            return self.module[key]
        head, _, rest = key.partition(".")
        if head in ("self", "cls") and rest in self.methods:
            return self.methods[rest]
        return None

    # --- Values ------------------------------------------------------------------------------------------------------

    def _value(self, node):
        if id(node) not in self.memo:
            self.memo[id(node)] = None  # a node within itself is none
            self.memo[id(node)] = self._evaluate(node)
        return self.memo[id(node)]

    def _evaluate(self, node):
        if isinstance(node, ast.Call):
            return self._call(node)
        if isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)):
            return self._named(node)
        if isinstance(node, (ast.Tuple, ast.List)):
            return [self._value(each.value if isinstance(each, ast.Starred) else each) for each in node.elts]
        if isinstance(node, ast.Lambda):
            return Function(node, self.scopes[-1])
        if isinstance(node, ast.NamedExpr):
            value = self._value(node.value)
            self._bind(node.target, value, node.value)
            return value
        if isinstance(node, ast.Await):
            return self._value(node.value)
        if isinstance(node, ast.Yield):
            value = self._value(node.value) if node.value else None
            self.graph_escapes |= isinstance(value, Graph)
            return None
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                self._value(child)
            elif isinstance(child, ast.comprehension):
                self._bind(child.target, Memory(), None)
                self._value(child.iter)
        return None if isinstance(node, ast.Constant) else self._fresh()

    def _named(self, node):
        key = dotted(node)
        found = self._find(key) if key is not None else None
        if found is not None:
            return found
        if isinstance(node, ast.Attribute) and node.attr in VIEWS:
            return self._value(node.value)
        if isinstance(node, ast.Subscript):
            self._value(node.slice)
            base = self._value(node.value)
            if isinstance(base, list) and isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, int):
                return base[node.slice.value] if -len(base) <= node.slice.value < len(base) else None
            if key is None:
                return base if isinstance(base, (Memory, Graph)) else None
        if key is None:
            if isinstance(node, ast.Attribute):
                self._value(node.value)
            return self._fresh()
        callee = self._callee(node)
        if callee is not None:
            return callee
        memory = Memory()
        self.scopes[-1][key] = memory
        return memory

    def _call(self, node):
        name, full = last_name(node.func), dotted(node.func) or last_name(node.func)
        callee = self._callee(node.func)
        positional = [self._value(each.value if isinstance(each, ast.Starred) else each) for each in node.args]
        keywords = {keyword.arg: self._value(keyword.value) for keyword in node.keywords}
        receiver = self._value(node.func.value) if isinstance(node.func, ast.Attribute) else None
        if isinstance(callee, Graph):
            self._replay(node, False)
            return Memory(captured=True)
        if name in REPLAYS or (name == "launch" and isinstance(receiver, Graph)):
            self._replay(node, bool(node.args and name == "replay"))
            return Memory(captured=True)
        if name in CAPTURE_BEGIN:
            self._begin_capture(node.lineno)
            return None
        if name in CAPTURE_END:
            self._end_capture()
            return Graph()
        if name in SKIPS and not self.conditional and name != "importorskip":
            self.skips.append((node.lineno, "skips itself always"))
        if isinstance(callee, Function):
            return self._inline(node, callee, positional, keywords)
        return self._unknown_call(node, name, full, receiver, positional, keywords)

    def _unknown_call(self, node, name, full, receiver, positional, keywords):
        if name == "CUDAGraph":
            return Graph()
        if name in GRAPHED:
            self.captures.append(Capture(node.lineno, True, bool(self.raising)))
            self.written = []
            return Graph(is_callable=True)
        values = positional + list(keywords.values())
        if any(isinstance(value, Graph) for value in values) and not CAPTURE_CONTEXT.search(full):
            self.graph_escapes = True
        if isinstance(receiver, Memory) and name in VIEWS and full.split(".")[0] not in ("torch", "np", "numpy"):
            return receiver
        if name.endswith("_") and not name.endswith("__"):
            target = receiver if isinstance(receiver, Memory) and isinstance(node.func, ast.Attribute) and \
                not _is_module(node.func.value) else (positional or [None])[0]
            self._write(target)
            return target
        if isinstance(receiver, Memory) and name in CLONES and not _is_module(node.func.value):
            return self._fresh(of=receiver)
        self._note_call(node, values)
        if isinstance(keywords.get("out"), Memory):
            self._write(keywords["out"])
            return keywords["out"]
        text = full + " " + " ".join(keyword.arg or "" for keyword in node.keywords)
        if UNKNOWN_CAPTURE.search(text) and not full.endswith(("is_current_stream_capturing", "cuda.graph")):
            self.unknown_graph_call = True
            self.captures.append(Capture(node.lineno, False, bool(self.raising)))
            self.written = []
            return Memory(captured=True)
        for value in values:  # a function of this file that somebody else calls
            if isinstance(value, Function):
                self._inline(node, value, [], {})
        return self._fresh()

    def _note_call(self, node, values):
        calls = self.calls_captured if self.in_capture else self.calls_before if not self.captures else None
        if calls is not None:
            calls.setdefault(ast.dump(node), []).extend(value for value in values if isinstance(value, Memory))

    def _inline(self, node, callee, positional, keywords):
        self.num_calls += 1
        if self.num_calls > MOST_CALLS or len(self.scopes) > DEPTH:
            return self._fresh()
        names = _arguments(callee.node.args)
        if callee.owner is not None and names[:1] in (["self"], ["cls"]):
            names = names[1:]
        scope = {" outer": callee.scope} if callee.scope is not None else {}
        for key, value in self.scopes[-1].items() if callee.owner is not None else ():
            if key.startswith("self."):
                scope[key] = value
        for argument in names:
            scope[argument] = self._fresh()
        for argument, value in [*zip(names, positional), *keywords.items()]:
            if argument in scope and value is not None:
                scope[argument] = value
        memo, self.memo = self.memo, {}
        self.scopes.append(scope)
        self.returns.append(None)
        if isinstance(callee.node, ast.Lambda):
            self.returns[-1] = self._value(callee.node.body)
        else:
            self._block(callee.node.body)
        self.scopes.pop()
        if callee.owner is not None:
            self.scopes[-1].update((key, value) for key, value in scope.items() if key.startswith("self."))
        self.memo = memo
        return self.returns.pop()

    # --- Events ------------------------------------------------------------------------------------------------------

    def _begin_capture(self, line):
        self.in_capture += 1
        self.captures.append(Capture(line, True, bool(self.raising)))

    def _end_capture(self):
        self.in_capture = max(0, self.in_capture - 1)
        self.written = []

    def _replay(self, node, has_inputs):
        self.replays.append(Replay(node.lineno, list(self.written) + ([None] if has_inputs else [])))

    def _write(self, memory):
        if not self.in_capture:
            self.written.append(memory if isinstance(memory, Memory) else None)

    def _stripped(self, memory):
        """What a clone that this statement made was cloned from."""
        while isinstance(memory, Memory) and memory.of is not None and memory.statement == self.statement:
            memory = memory.of
        return memory

    def _compare(self, node, expression):
        self._value(expression)
        found = list(_pairs(expression))
        pairs = [(self._stripped(self._value(left)), self._stripped(self._value(right)), ast.dump(left) == ast.dump(right))
                 for left, right in found]
        weak = all(_is_of_shape(left) or _is_of_shape(right) for left, right in found) if found else _is_weak(expression)
        self.comparisons.append(Comparison(node, pairs, weak, len(self.replays), bool(self.captures)))


def _arguments(arguments):
    named = arguments.posonlyargs + arguments.args + arguments.kwonlyargs
    return [argument.arg for argument in named]


def _is_strict(decorator):
    return isinstance(decorator, ast.Call) and any(
        keyword.arg in ("strict", "condition") or keyword.arg is None for keyword in decorator.keywords) or (
            isinstance(decorator, ast.Call) and bool(decorator.args))


def _is_module(node):
    return isinstance(node, ast.Name) and node.id in ("torch", "np", "numpy", "cp", "cupy", "F", "wp", "nn") or (
        isinstance(node, ast.Attribute) and _is_module(node.value) and node.attr in ("nn", "init", "functional", "testing",
                                                                                   "cuda"))


def _pairs(expression):
    """(left, right) of what an expression compares."""
    for node in ast.walk(expression):
        if isinstance(node, ast.Call):
            name = last_name(node.func)
            given = {keyword.arg: keyword.value for keyword in node.keywords}
            actual = given.get("actual", given.get("input"))
            expected = given.get("expected", given.get("desired", given.get("other")))
            if actual is not None and expected is not None:
                yield actual, expected
            elif COMPARES.search(name) and len(node.args) >= 2:
                yield node.args[0], node.args[1]
            elif COMPARES.search(name) and len(node.args) == 1 and isinstance(node.func, ast.Attribute) \
                    and not _is_module(node.func.value) and name not in ("assertTrue", "assertFalse"):
                yield node.func.value, node.args[0]
        elif isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Eq):
            yield node.left, node.comparators[0]
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub):
            yield node.left, node.right


def _is_of_shape(node):
    """Whether it tells only of a shape, a type or a count."""
    if isinstance(node, ast.Attribute) and node.attr in SHAPES:
        return True
    return isinstance(node, ast.Call) and last_name(node.func) in SHAPE_CALLS or (
        isinstance(node, ast.Subscript) and _is_of_shape(node.value))


def _is_weak(expression):
    if isinstance(expression, ast.Compare) and isinstance(expression.ops[0], (ast.Is, ast.IsNot)):
        return True
    if isinstance(expression, ast.Call) and last_name(expression.func) in ("assertIsNotNone", "assertIsInstance"):
        return True
    if isinstance(expression, (ast.BoolOp, ast.UnaryOp)):
        return all(_is_weak(each) for each in ast.iter_child_nodes(expression) if isinstance(each, ast.expr))
    calls = [last_name(node.func) for node in ast.walk(expression) if isinstance(node, ast.Call)]
    attributes = {node.attr for node in ast.walk(expression) if isinstance(node, ast.Attribute)}
    return bool(set(calls) & SHAPE_CALLS) and set(calls) <= SHAPE_CALLS | {"all", "any", "item", "bool", "assertTrue",
                                                                           "assertFalse"} or (
        not calls and bool(attributes & SHAPES))
