"""Checks of literals that a type alone does not show: regular expressions, durations, timestamps, formats, and that
the elements of a list or map are of one type.
"""

from situate.core.cel.ast import Call, ListLiteral, Literal, MapLiteral, Node, children, map_key_node
from situate.core.cel.calls import bind
from situate.core.cel.checker import Checked
from situate.core.cel.environment import Environment
from situate.core.cel.errors import ErrorValue
from situate.core.cel.libraries.string_format import CLAUSES, FormatClauseError, interpolate
from situate.core.cel.regex import RegexError, compile_regex
from situate.core.cel.source import NO_LOCATION, Issues, SourceText
from situate.core.cel.types import CelType, format_type, is_equivalent

_FORMATTED = {
    "d": ("int", "uint"),
    "f": ("double", "string"),
    "e": ("double", "string"),
    "b": ("int", "uint", "bool"),
    "x": ("int", "uint", "string", "bytes"),
    "X": ("int", "uint", "string", "bytes"),
    "o": ("int", "uint"),
}
_AS_STRING = (
    "list", "map", "int", "uint", "double", "bool", "string", "timestamp", "bytes", "duration", "type", "null",
)  # fmt: skip


def validate(checked: Checked, environment: Environment, source: SourceText, issues: Issues) -> bool:
    """Whether nothing is wrong; what is, is reported."""
    validator = _Validator(checked, environment, source, issues)
    nodes = _walk(checked.root)
    calls = [(node, exempt) for node, exempt in nodes if isinstance(node, Call)]
    for function in ("duration", "timestamp"):
        for call, _ in calls:
            validator.conversion(call, function)
    for call, _ in calls:
        validator.regex(call)
    for node, exempt in nodes:
        if isinstance(node, ListLiteral) and not exempt:
            validator.elements(node)
    for node, exempt in nodes:
        if isinstance(node, MapLiteral) and not exempt:
            validator.entries(node)
    for call, _ in calls:
        validator.format(call)
    return not issues.count


def _walk(root: Node) -> list[tuple[Node, bool]]:
    """Every node, children first, and whether it stands within an argument of `format`."""
    found: list[tuple[Node, bool]] = []
    pending = [(root, False)]
    while pending:
        node, exempt = pending.pop()
        found.append((node, exempt))
        inner = exempt or (isinstance(node, Call) and node.function == "format")
        pending.extend((child, inner) for child in children(node))
    found.reverse()
    return found


class _Validator:
    def __init__(self, checked: Checked, environment: Environment, source: SourceText, issues: Issues) -> None:
        self.checked = checked
        self.environment = environment
        self.source = source
        self.issues = issues

    def _report(self, number: int, message: str) -> None:
        position = self.checked.positions.get(number)
        self.issues.report(NO_LOCATION if position is None else self.source.location(position), message)

    def conversion(self, call: Call, function: str) -> None:
        if call.function != function or not call.args:
            return
        literal = call.args[0]
        if not isinstance(literal, Literal):
            return
        code = bind(self.environment.functions[function], self.checked.overloads.get(call.id, ()), 1, call.id).code
        if isinstance(code(literal.value), ErrorValue):
            self._report(literal.id, f"invalid {function} argument")

    def regex(self, call: Call) -> None:
        # The first argument of the function `matches` is the text; cel-go checks that one.
        if call.function != "matches" or not call.args:
            return
        literal = call.args[0]
        if not isinstance(literal, Literal) or not isinstance(literal.value, str):
            return
        try:
            compile_regex(literal.value)
        except RegexError:
            self._report(literal.id, "invalid matches argument")

    def _mismatch(self, number: int, expected: CelType, found: CelType) -> None:
        self._report(number, f"expected type '{format_type(expected)}' but found '{format_type(found)}'")

    def _type(self, node: Node, optional: bool) -> CelType:
        found = self.checked.types[node.id]
        return found.parameters[0] if optional and found.parameters else found

    def elements(self, node: ListLiteral) -> None:
        expected: CelType | None = None
        for index, element in enumerate(node.elements):
            found = self._type(element, index in node.optional)
            if expected is None:
                expected = found
            elif not is_equivalent(expected, found):
                self._mismatch(element.id, expected, found)
                return

    def entries(self, node: MapLiteral) -> None:
        expected: tuple[CelType, CelType] | None = None
        for entry in node.entries:
            key = map_key_node(entry)
            found = self._type(key, False), self._type(entry.value, entry.optional)
            if expected is None:
                expected = found
                continue
            for part, wanted, given in zip((key, entry.value), expected, found, strict=True):
                if not is_equivalent(wanted, given):
                    self._mismatch(part.id, wanted, given)

    def format(self, call: Call) -> None:
        text = call.target
        if call.function != "format" or not isinstance(text, Literal) or not isinstance(text.value, str):
            return
        if len(call.args) != 1 or not isinstance(call.args[0], ListLiteral):
            return
        elements = call.args[0].elements
        asked = 0
        blamed = call.id

        def argument(index: int) -> int:
            nonlocal asked
            asked += 1
            if str(text.value).endswith("%") and not _has_clause(str(text.value), index):
                return index
            if index >= len(elements):
                raise FormatClauseError(f"index {index} out of range")
            return index

        def write(clause: str, precision: int | None, index: int) -> str:
            nonlocal blamed
            wrong = self._unformattable(clause, elements[index])
            if wrong is not None:
                blamed = wrong
                raise FormatClauseError(f"error during formatting: {CLAUSES[clause]}{self.checked.types[wrong].name}")
            return ""

        try:
            interpolate(text.value, argument, write)
        except FormatClauseError as error:
            self._report(blamed, str(error))
            return
        if len(elements) > asked:
            self._report(
                call.id,
                f"too many arguments supplied to string.format (expected {asked}, got {len(elements)})",
            )

    def _unformattable(self, clause: str, node: Node) -> int | None:
        """The number of the node that the clause cannot format."""
        kind = self.checked.types[node.id].kind
        if clause != "s":
            return None if kind == "dyn" or kind in _FORMATTED[clause] else node.id
        if kind != "dyn" and kind not in _AS_STRING:
            return node.id
        parts = children(node) if isinstance(node, (ListLiteral, MapLiteral)) else []
        return next((found for part in parts if (found := self._unformattable(clause, part)) is not None), None)


def _has_clause(text: str, index: int) -> bool:
    """Whether the clause with this number is more than a lone percent sign at the end."""
    clauses = text.replace("%%", "").split("%")[1:]
    return index < len(clauses) and bool(clauses[index])
