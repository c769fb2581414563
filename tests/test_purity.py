"""The core gives the same answer to the same question, everywhere and always: what its source must not contain.

The import contracts in pyproject.toml forbid modules; this file forbids what needs no import (`open`, `print`, `hash`),
what hides inside an allowed one (`numpy.random`, `datetime.now`), and iterating over a set, whose order changes with
PYTHONHASHSEED. It reads the source and runs none of it. It sees a set where one is written, annotated or returned by a
function of the same module; a set that comes from further away is left to the tests that run under two seeds.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "situate"
MODULES = sorted((SOURCE / "core").rglob("*.py"))

ALLOWED_IMPORTS = frozenset(
    "__future__ abc array base64 binascii bisect collections contextlib copy dataclasses datetime decimal enum "
    "fractions functools hashlib heapq ipaddress itertools json math msgspec numpy operator re situate string struct "
    "types typing typing_extensions unicodedata zlib zoneinfo".split()
)
"""The database of time zones is data, as that of unicodedata is."""
FORBIDDEN_CALLS = frozenset(
    "open print input hash id eval exec compile breakpoint globals locals vars __import__".split()
)
FORBIDDEN_ATTRIBUTES = frozenset(
    "datetime.now datetime.utcnow datetime.today date.today np.random numpy.random np.load np.save numpy.load "
    "numpy.save np.savetxt np.fromfile np.memmap numpy.memmap np.loadtxt np.genfromtxt".split()
)
SET_TYPES = frozenset({"set", "frozenset", "Set", "FrozenSet", "AbstractSet", "MutableSet"})
SET_METHODS = frozenset({"union", "intersection", "difference", "symmetric_difference"})
# The order in which these are fed cannot be seen in what they return.
ORDER_BLIND = frozenset({"all", "any", "frozenset", "len", "max", "min", "set", "sorted"})
# These keep the order in which they are fed.
ORDER_KEEPING = frozenset(
    {"array", "asarray", "chain", "deque", "dict", "enumerate", "extend", "fromiter", "fromkeys", "islice", "iter"}
    | {"join", "list", "map", "filter", "reduce", "reversed", "sum", "tuple", "zip"}
)


@dataclass(slots=True)
class Scope:
    """The names known to hold sets, here and in the scopes around."""

    names: set[str] = field(default_factory=set)
    attributes: set[str] = field(default_factory=set)


def findings(source: str) -> list[str]:
    """One line for each thing in this source that the core must not contain."""
    tree = ast.parse(source)
    scope = Scope(names=_names_of_sets(tree.body) | _functions_that_return_sets(tree))
    return sorted(set(_imports(tree)) | set(_calls(tree)) | set(_iterations(tree, scope)))


def _imports(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        modules: list[str] = []
        if isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            modules = [f"{node.module}.{alias.name}" for alias in node.names]
        for module in modules:
            if module.split(".")[0] not in ALLOWED_IMPORTS or module.startswith("numpy.random"):
                yield f"line {node.lineno}: imports {module}"  # type: ignore[attr-defined]


def _calls(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in FORBIDDEN_CALLS:
            yield f"line {node.lineno}: calls {node.func.id}()"
        if isinstance(node, ast.Attribute):
            dotted = ".".join(ast.unparse(node).split(".")[-2:])
            if dotted in FORBIDDEN_ATTRIBUTES:
                yield f"line {node.lineno}: uses {dotted}"


def _iterations(node: ast.AST, scope: Scope) -> Iterator[str]:
    """Walk down, learning which names hold sets, and report each place where one's order is looked at."""
    if isinstance(node, ast.ClassDef):
        scope = Scope(scope.names, _names_of_sets(node.body))
    elif isinstance(node, ast.FunctionDef):
        arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
        own = {arg.arg for arg in arguments if _is_set_type(arg.annotation)}
        hidden = {arg.arg for arg in arguments} - own
        scope = Scope((scope.names - hidden) | own | _names_of_sets(node.body), scope.attributes)

    blind = isinstance(node, ast.SetComp)
    for looked_at in _ordered_reads(node):
        if not blind and _is_set(looked_at, scope):
            yield f"line {looked_at.lineno}: iterates over the set {ast.unparse(looked_at)}"

    for child in ast.iter_child_nodes(node):
        if _feeds_the_order_blind(node, child):
            yield from _inside_generator(child, scope)
        else:
            yield from _iterations(child, scope)


def _ordered_reads(node: ast.AST) -> list[ast.expr]:
    """The expressions whose order this node looks at."""
    match node:
        case ast.For(iter=iterable) | ast.Starred(value=iterable) | ast.YieldFrom(value=iterable):
            return [iterable]
        case ast.ListComp() | ast.DictComp() | ast.GeneratorExp():
            return [generator.iter for generator in node.generators]
        case ast.Assign(targets=[ast.Tuple() | ast.List()], value=value):
            return [value]
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)) if name in ORDER_KEEPING:
            return list(node.args)
        case ast.Call(func=ast.Attribute(value=value, attr="pop"), args=[]):
            return [value]
    return []


def _feeds_the_order_blind(node: ast.AST, child: ast.AST) -> bool:
    called = node.func if isinstance(node, ast.Call) else None
    named = isinstance(called, ast.Name) and called.id in ORDER_BLIND
    keyed = isinstance(node, ast.Call) and bool(node.keywords)  # max(s, key=...) lets the order settle ties
    return named and not keyed and isinstance(child, ast.GeneratorExp | ast.ListComp)


def _inside_generator(node: ast.AST, scope: Scope) -> Iterator[str]:
    for child in ast.iter_child_nodes(node):
        yield from _iterations(child, scope)


def _is_set(node: ast.expr, scope: Scope) -> bool:
    match node:
        case ast.Set() | ast.SetComp():
            return True
        case ast.Name(id=name):
            return name in scope.names
        case ast.Attribute(value=ast.Name(id="self"), attr=name):
            return name in scope.attributes
        case ast.Call(func=ast.Name(id="set" | "frozenset")):
            return True
        case ast.Call(func=ast.Name(id=name)):
            return f"{name}()" in scope.names
        case ast.Call(func=ast.Attribute(value=value, attr=name)):
            return name in SET_METHODS and _is_set(value, scope)
        case ast.BinOp(left=left, op=ast.BitOr() | ast.BitAnd() | ast.Sub() | ast.BitXor(), right=right):
            return _is_set(left, scope) or _is_set(right, scope)
        case ast.IfExp(body=body, orelse=orelse):
            return _is_set(body, scope) or _is_set(orelse, scope)
    return False


def _is_set_type(annotation: ast.expr | None) -> bool:
    match annotation:
        case ast.Subscript(value=ast.Name(id="ClassVar" | "Final"), slice=inner):
            return _is_set_type(inner)
        case ast.Subscript(value=outer):
            return _is_set_type(outer)
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name in SET_TYPES
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            return _is_set_type(left) or _is_set_type(right)
    return False


def _names_of_sets(body: list[ast.stmt]) -> set[str]:
    """The names that these statements, or those nested in them but for functions and classes, bind to a set."""
    found: set[str] = set()
    for statement in body:
        match statement:
            case ast.FunctionDef() | ast.ClassDef():
                continue
            case ast.AnnAssign(target=ast.Name(id=name), annotation=annotation):
                if _is_set_type(annotation):
                    found.add(name)
            case ast.Assign(targets=targets, value=value) if _is_set(value, Scope(names=found)):
                found |= {target.id for target in targets if isinstance(target, ast.Name)}
        for block in ("body", "orelse", "finalbody"):
            found |= _names_of_sets(getattr(statement, block, []))
    return found


def _functions_that_return_sets(tree: ast.Module) -> set[str]:
    return {f"{node.name}()" for node in tree.body if isinstance(node, ast.FunctionDef) and _is_set_type(node.returns)}


@pytest.mark.parametrize("path", MODULES, ids=lambda path: f"{path.relative_to(SOURCE)} is pure")
def test_a_core_module_is_pure(path: Path) -> None:
    assert findings(path.read_text()) == []


def test_there_are_core_modules_to_look_at() -> None:
    assert MODULES


@pytest.mark.parametrize(
    "source",
    [
        pytest.param("import os", id="a module that does I/O"),
        pytest.param("from time import monotonic", id="a clock"),
        pytest.param("import numpy.random", id="numpy's dice, imported"),
        pytest.param("from numpy import random", id="numpy's dice, imported by name"),
        pytest.param("np.random.default_rng()", id="numpy's dice, used"),
        pytest.param("datetime.datetime.now()", id="the clock of an allowed module"),
        pytest.param("print('hello')", id="printing"),
        pytest.param("key = hash(name)", id="hash, which differs from run to run"),
        pytest.param("key = id(pod)", id="id, which differs from run to run"),
        pytest.param("for x in {1, 2}: f(x)", id="a loop over a set"),
        pytest.param("for x in set(names): f(x)", id="a loop over a made set"),
        pytest.param("[f(x) for x in {y for y in z}]", id="a list from a set comprehension"),
        pytest.param("list(frozenset(names))", id="a list of a set"),
        pytest.param("', '.join(set(names))", id="a joined set"),
        pytest.param("def f(s: set[str]) -> None:\n    for x in s: g(x)", id="a loop over an argument"),
        pytest.param("def f() -> None:\n    s = set()\n    for x in s: g(x)", id="a loop over a local set"),
        pytest.param("S: Final[frozenset[str]] = g()\nt = tuple(S)", id="a tuple of a constant"),
        pytest.param("def f() -> set[str]: ...\nfor x in f(): g(x)", id="a loop over what a function returns"),
        pytest.param("for x in set(a) | b: f(x)", id="a loop over a union"),
        pytest.param("class C:\n    s: set[str]\n    def f(self):\n        return [*self.s]", id="an attribute"),
        pytest.param("def f(s: set[str]) -> str:\n    return s.pop()", id="an arbitrary member"),
        pytest.param("max((x for x in {1, 2}), key=f)", id="a tie settled by the order of a set"),
    ],
)
def test_a_fault_is_found(source: str) -> None:
    assert len(findings(source)) == 1


@pytest.mark.parametrize(
    "source",
    [
        pytest.param("for x in sorted(set(names)): f(x)", id="a sorted set"),
        pytest.param("if name in {'a', 'b'}: f()", id="membership"),
        pytest.param("n = len(set(names))", id="size"),
        pytest.param("any(x > 1 for x in {1, 2})", id="any"),
        pytest.param("t = {x + 1 for x in {1, 2}}", id="a set from a set"),
        pytest.param("for x in dict.fromkeys(names): f(x)", id="a dict as an ordered set"),
        pytest.param("def f(s: list[str]) -> None:\n    for x in s: g(x)", id="a list"),
        pytest.param(
            "s = set()\ndef f(s: list[str]) -> list[str]:\n    return [*s]", id="an argument that hides a set"
        ),
        pytest.param("from datetime import datetime, timezone\nd = datetime.fromisoformat(t)", id="parsing a time"),
    ],
)
def test_what_is_harmless_is_let_be(source: str) -> None:
    assert findings(source) == []
