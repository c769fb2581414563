"""Makes mutants: one small change to a source file each. Pure; run.py runs the tests on them."""

import ast
import copy
import difflib
from collections.abc import Iterator
from typing import NamedTuple

_SWAPPED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_LOGS = ("_log", "log", "logger", "warnings")
_UNREACHABLE = "assert_never"
"""mypy proves that no value gets there."""


class Mutant(NamedTuple):
    path: str
    """Below src/situate."""
    line: int
    what: str
    above: str
    """The line above, without indentation."""
    before: str
    """The changed lines, without indentation and joined by a space."""
    after: str
    span: tuple[int, int, int, int]
    """First line and column, last line and column of what is replaced; lines from 0, columns in bytes."""
    text: str

    def source(self, original: str) -> str:
        """The whole changed file."""
        first, column, last, end = self.span
        lines = original.encode().splitlines(keepends=True)
        changed = lines[first][:column] + self.text.encode() + lines[last][end:]
        return b"".join([*lines[:first], changed, *lines[last + 1 :]]).decode()

    def is_valid(self, original: str) -> bool:
        try:
            compile(self.source(original), self.path, "exec")
        except (SyntaxError, ValueError):
            return False
        return True

    def diff(self, original: str) -> str:
        name = f"src/situate/{self.path}"
        old, new = original.splitlines(keepends=True), self.source(original).splitlines(keepends=True)
        return "".join(difflib.unified_diff(old, new, name, name, n=2))


def mutants_of(path: str, source: str) -> list[Mutant]:
    """All of them, in the order of the file."""
    lines = source.encode().splitlines()
    found: list[Mutant] = []
    for node, what, text in _changes(ast.parse(source)):
        first, last = node.lineno - 1, (node.end_lineno or node.lineno) - 1
        end = node.end_col_offset or 0
        above = lines[first - 1].decode().strip() if first else ""
        before = " ".join(line.decode().strip() for line in lines[first : last + 1])
        after = (lines[first][: node.col_offset] + text.encode() + lines[last][end:]).decode().strip()
        found.append(Mutant(path, node.lineno, what, above, before, after, (first, node.col_offset, last, end), text))
    return found


_Spot = ast.stmt | ast.expr


def _changes(tree: ast.Module) -> Iterator[tuple[_Spot, str, str]]:
    """A node, what is done to it, and its new text."""
    for function in _functions(tree):
        body = function.body[1:] if ast.get_docstring(function) is not None else function.body
        if len(body) > 1 and isinstance(function.returns, ast.Constant) and function.returns.value is None:
            yield body[0], "return early", "return"
        for statement in body:
            for node in _within(statement):
                yield from _statement(node) if isinstance(node, ast.stmt) else _expression(node)


def _functions(node: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Functions of the module and methods. What is defined in a function is part of it."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            yield child
        elif isinstance(child, ast.ClassDef | ast.If | ast.Try):
            yield from _functions(child)


_ASSERTION = "strict"
"""An argument of zip() that asserts what holds anyway."""


def _within(statement: ast.stmt) -> Iterator[_Spot]:
    """A statement and what is in it, without messages to people and annotations."""
    if _is_about_people(statement):
        return
    yield statement
    for child in ast.iter_child_nodes(statement):
        yield from _below(child)


def _below(node: ast.AST) -> Iterator[_Spot]:
    if isinstance(node, ast.stmt):
        yield from _within(node)
    elif isinstance(node, ast.expr):
        if isinstance(node, ast.JoinedStr):
            return
        yield node
        for child in ast.iter_child_nodes(node):
            yield from _below(child)
    elif isinstance(node, ast.keyword) and node.arg == _ASSERTION:
        return
    elif isinstance(node, ast.keyword | ast.comprehension | ast.match_case | ast.ExceptHandler | ast.withitem):
        for child in ast.iter_child_nodes(node):
            yield from _below(child)


def _is_about_people(statement: ast.stmt) -> bool:
    """Logging, docstrings of attributes, declarations, and what is for the type checker."""
    if isinstance(statement, ast.Import | ast.ImportFrom | ast.Pass | ast.Global | ast.Nonlocal):
        return True
    if isinstance(statement, ast.If) and not statement.orelse:
        return all(map(_is_about_people, statement.body))
    if not isinstance(statement, ast.Expr):
        return False
    called = statement.value
    if isinstance(called, ast.Constant):
        return True
    while isinstance(called, ast.Call | ast.Attribute):
        called = called.func if isinstance(called, ast.Call) else called.value
    return isinstance(called, ast.Name) and called.id in (*_LOGS, _UNREACHABLE)


def _statement(node: ast.stmt) -> Iterator[tuple[_Spot, str, str]]:
    if isinstance(node, ast.If | ast.While):
        yield node.test, "negated condition", f"not ({ast.unparse(node.test)})"
    if isinstance(node, ast.Expr | ast.AugAssign | ast.Raise | ast.Delete | ast.Continue | ast.Break):
        yield node, "dropped statement", "pass"
    if isinstance(node, ast.Assign) and all(isinstance(one, ast.Attribute | ast.Subscript) for one in node.targets):
        yield node, "dropped statement", "pass"


def _expression(node: ast.expr) -> Iterator[tuple[_Spot, str, str]]:
    match node:
        case ast.BoolOp(op, values):
            swapped = ast.BoolOp(ast.Or() if isinstance(op, ast.And) else ast.And(), values)
            yield node, "and/or", f"({ast.unparse(swapped)})"
        case ast.Compare(left, [op], others) if type(op) in _SWAPPED:
            yield node, "comparison", f"({ast.unparse(ast.Compare(left, [_SWAPPED[type(op)]()], others))})"
        case ast.IfExp(test):
            negated = copy.deepcopy(node)
            negated.test = ast.UnaryOp(ast.Not(), test)
            yield node, "negated condition", f"({ast.unparse(negated)})"
        case ast.Constant(int() as value) if not isinstance(value, bool):
            yield node, "off by one", str(value + 1)
        case ast.Constant(bool() as flag):
            yield node, "other truth", str(not flag)
