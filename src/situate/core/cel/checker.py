"""Types of expressions: what each node is, which overloads a call may mean, and what does not fit."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from situate.core.cel.ast import (
    Broken,
    Call,
    Comprehension,
    Ident,
    ListLiteral,
    Literal,
    MapLiteral,
    MessageLiteral,
    Node,
    Select,
    map_key_node,
    qualified_name,
)
from situate.core.cel.environment import Environment
from situate.core.cel.functions import Function
from situate.core.cel.inference import Substitutions, most_general
from situate.core.cel.parser import Parsed
from situate.core.cel.source import NO_LOCATION, Issues, SourceText
from situate.core.cel.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DYN,
    ERROR,
    INT,
    NULL,
    STRING,
    UINT,
    CelType,
    format_call,
    format_type,
    is_exact,
    list_of,
    map_of,
    optional_of,
    param,
    type_of,
    unwrap_optional,
)
from situate.core.cel.values import UInt

_LITERALS: dict[type, CelType] = {
    bool: BOOL, int: INT, UInt: UINT, float: DOUBLE, str: STRING, bytes: BYTES, type(None): NULL,
}  # fmt: skip


@dataclass(slots=True)
class Checked:
    """A tree with the type of each node, the overloads of each call, and what each name refers to."""

    root: Node
    positions: dict[int, int]
    types: dict[int, CelType]
    overloads: dict[int, tuple[str, ...]]
    names: dict[int, str]  # of variables and types, resolved; a select may be one of these too


class _Scopes:
    """Names of the variables that are visible, the innermost first."""

    def __init__(self, names: Mapping[str, CelType]) -> None:
        self._scopes: list[dict[str, CelType]] = [dict(names)]

    def push(self) -> None:
        self._scopes.append({})

    def pop(self) -> None:
        self._scopes.pop()

    def add(self, name: str, value: CelType) -> None:
        self._scopes[-1].setdefault(name, value)

    def find(self, name: str) -> CelType | None:
        for scope in reversed(self._scopes):
            if (found := scope.get(name)) is not None:
                return found
        return None


def check(parsed: Parsed, environment: Environment, source: SourceText, issues: Issues) -> Checked | None:
    """The checked tree, or None with the issues reported."""
    checker = _Checker(parsed.positions, environment, source, issues)
    checker.check(parsed.root)
    if issues.count:
        return None
    known = checker.substitutions
    types = {number: known.apply(value, unknown_is_dyn=True) for number, value in checker.types.items()}
    return Checked(parsed.root, parsed.positions, types, checker.overloads, checker.names)


@dataclass(slots=True)
class _Checker:
    positions: dict[int, int]
    environment: Environment
    source: SourceText
    issues: Issues
    types: dict[int, CelType] = field(default_factory=dict)
    overloads: dict[int, tuple[str, ...]] = field(default_factory=dict)
    names: dict[int, str] = field(default_factory=dict)
    substitutions: Substitutions = field(default_factory=Substitutions)
    scopes: _Scopes = field(init=False)
    type_variables: int = 0

    def __post_init__(self) -> None:
        self.scopes = _Scopes(self.environment.variables)

    def check(self, node: Node) -> None:
        match node:
            case Literal():
                self.types[node.id] = _LITERALS[type(node.value)]
            case Ident():
                self._ident(node)
            case Select():
                self._select(node)
            case Call():
                self._call(node)
            case ListLiteral():
                self._list(node)
            case MapLiteral():
                self._map(node)
            case MessageLiteral():
                self._message(node)
            case Comprehension():
                self._comprehension(node)
            case Broken():
                self.types[node.id] = ERROR

    def _report(self, number: int, message: str) -> None:
        position = self.positions.get(number)
        self.issues.report(NO_LOCATION if position is None else self.source.location(position), message)

    def _mismatch(self, number: int, expected: CelType, found: CelType) -> None:
        self._report(number, f"expected type '{format_type(expected)}' but found '{format_type(found)}'")

    def _undeclared(self, node: Node, name: str) -> None:
        self.types[node.id] = ERROR
        self._report(node.id, f"undeclared reference to '{name}' (in container '')")

    # Names.

    def _lookup(self, name: str) -> tuple[str, CelType] | None:
        name = name.removeprefix(".")
        if (found := self.scopes.find(name)) is not None:
            return name, found
        if (named := self.environment.types.get(name)) is not None:
            return name, type_of(named)
        return None

    def _function(self, name: str) -> Function | None:
        return self.environment.functions.get(name.removeprefix("."))

    def _ident(self, node: Ident) -> None:
        found = self._lookup(node.name)
        if found is None:
            self._undeclared(node, node.name)
            return
        self.names[node.id], self.types[node.id] = found

    def _select(self, node: Select) -> None:
        name = qualified_name(node)
        if name is not None and (found := self._lookup(name)) is not None:
            self.names[node.id], self.types[node.id] = found
            return
        result = self._field(node, node.operand, node.field, optional=False)
        self.types[node.id] = self.substitutions.apply(BOOL if node.test_only else result, unknown_is_dyn=False)

    def _field(self, node: Node, operand: Node, name: str, optional: bool) -> CelType:
        self.check(operand)
        target, is_optional = unwrap_optional(self.substitutions.apply(self.types[operand.id], unknown_is_dyn=False))
        result = ERROR
        match target.kind:
            case "map":
                result = target.parameters[1]
            case "struct":
                result = self._field_type(node.id, target.name, name) or ERROR
            case "param":
                self._assign(DYN, target)
                result = DYN
            case _:
                if target.kind not in ("dyn", "any", "error"):
                    self._report(node.id, f"type '{format_type(target)}' does not support field selection")
                result = DYN
        return optional_of(result) if is_optional or optional else result

    def _field_type(self, number: int, struct: str, name: str) -> CelType | None:
        fields = self.environment.fields.get(struct)
        if fields is None:
            self._report(number, f"unexpected failed resolution of '{struct}'")
            return None
        found = fields.get(name)
        if found is None:
            self._report(number, f"undefined field '{name}'")
        return found

    # Calls.

    def _call(self, node: Call) -> None:
        if node.function == "_?._":
            result = self._field(node, node.args[0], _field_name(node.args[1]), optional=True)
            self.types[node.id] = self.substitutions.apply(result, unknown_is_dyn=False)
            self.overloads[node.id] = ("select_optional_field",)
            return
        for arg in node.args:
            self.check(arg)
        if node.target is None:
            function = self._function(node.function)
            if function is None:
                self._undeclared(node, node.function)
                return
            node.function = function.name
            self._resolve(node, function)
            return
        prefix = qualified_name(node.target)
        if prefix is not None and (function := self._function(f"{prefix}.{node.function}")) is not None:
            node.function, node.target = function.name, None
            self._resolve(node, function)
            return
        self.check(node.target)
        function = self._function(node.function)
        if function is None:
            self._undeclared(node, node.function)
            return
        self._resolve(node, function)

    def _resolve(self, node: Call, function: Function) -> None:
        is_member = node.target is not None
        operands = [*([node.target] if node.target is not None else []), *node.args]
        given = [self.types[operand.id] for operand in operands]
        if function.name in ("_&&_", "_||_"):
            self._resolve_logical(node, given)
            return
        result: CelType | None = None
        matching: list[str] = []
        for one in function.overloads:
            if one.is_member != is_member:
                continue
            args, declared = list(one.args), one.result
            if one.params:
                fresh = Substitutions()
                for name in one.params:
                    fresh.add(param(name), self._type_variable())
                args = [fresh.apply(arg, unknown_is_dyn=False) for arg in args]
                declared = fresh.apply(declared, unknown_is_dyn=False)
            attempt = self.substitutions.assignable_lists(given, args)
            if attempt is None:
                continue
            self.substitutions = attempt
            matching.append(one.id)
            found = attempt.apply(declared, unknown_is_dyn=False)
            if result is None:
                result = found
            elif not result.is_dynamic and not is_exact(found, result):
                result = DYN
        if result is None:
            shown = [self.substitutions.apply(value, unknown_is_dyn=True) for value in given]
            self._report(
                node.id,
                f"found no matching overload for '{function.name}' applied to '{format_call(shown, is_member)}'",
            )
            self.types[node.id] = ERROR
            return
        self.types[node.id] = result
        self.overloads[node.id] = tuple(matching)

    def _resolve_logical(self, node: Call, given: list[CelType]) -> None:
        fits = True
        for arg, value in zip(node.args, given, strict=True):
            if not self._assign(value, BOOL):
                self._mismatch(arg.id, BOOL, value)
                fits = False
        self.types[node.id] = BOOL if fits else ERROR

    # Literals with parts.

    def _list(self, node: ListLiteral) -> None:
        joined: CelType | None = None
        for index, element in enumerate(node.elements):
            self.check(element)
            joined = self._joined(joined, self._part(element, index in node.optional))
        self.types[node.id] = list_of(self._type_variable() if joined is None else joined)

    def _map(self, node: MapLiteral) -> None:
        key_type: CelType | None = None
        value_type: CelType | None = None
        for entry in node.entries:
            key = map_key_node(entry)
            self.check(key)
            key_type = self._joined(key_type, self.types[key.id])
            self.check(entry.value)
            value_type = self._joined(value_type, self._part(entry.value, entry.optional))
        if key_type is None or value_type is None:
            key_type, value_type = self._type_variable(), self._type_variable()
        self.types[node.id] = map_of(key_type, value_type)

    def _message(self, node: MessageLiteral) -> None:
        found = self._lookup(node.type_name)
        if found is None:
            self._undeclared(node, node.type_name)
            return
        node.type_name, declared = found
        self.names[node.id] = node.type_name
        struct_name, result = node.type_name, ERROR
        if declared.kind != "type":
            self._report(node.id, f"'{declared.declared_name}' is not a type")
        else:
            result = declared.parameters[0]
            if result.kind == "struct":
                struct_name = result.name
            elif node.type_name not in self.environment.fields:
                self._report(node.id, f"'{result.declared_name}' is not a message type")
                result = ERROR
        self.types[node.id] = result
        for entry in node.entries:
            self.check(entry.value)
            expected = self._field_type(entry.id, struct_name, str(entry.key)) or ERROR
            value = self._part(entry.value, entry.optional)
            if not self._assign(expected, value):
                self._report(
                    entry.id,
                    f"expected type of field '{entry.key}' is '{format_type(expected)}' "
                    f"but provided type is '{format_type(value)}'",
                )

    def _part(self, node: Node, optional: bool) -> CelType:
        value = self.types[node.id]
        if not optional:
            return value
        inner, is_optional = unwrap_optional(value)
        if not is_optional and not inner.is_dynamic:
            self._mismatch(node.id, optional_of(inner), inner)
        return inner

    def _joined(self, previous: CelType | None, current: CelType) -> CelType:
        if previous is None:
            return current
        if self._assign(previous, current):
            return most_general(previous, current)
        return DYN

    # Loops.

    def _comprehension(self, node: Comprehension) -> None:
        self.check(node.range)
        self.check(node.start)
        over = self.substitutions.apply(self.types[node.range.id], unknown_is_dyn=False)
        accumulated = self.types[node.start.id]
        self.scopes.push()
        self.scopes.add(node.accumulator, accumulated)
        first, second = self._loop_variables(node, over)
        self.scopes.push()
        self.scopes.add(node.variable, first)
        if node.variable2:
            self.scopes.add(node.variable2, second)
        self.check(node.condition)
        self._assert(node.condition, BOOL)
        self.check(node.step)
        self._assert(node.step, accumulated)
        self.scopes.pop()
        self.check(node.result)
        self.scopes.pop()
        self.types[node.id] = self.substitutions.apply(self.types[node.result.id], unknown_is_dyn=False)

    def _loop_variables(self, node: Comprehension, over: CelType) -> tuple[CelType, CelType]:
        match over.kind:
            case "list":
                element = over.parameters[0]
                return (INT, element) if node.variable2 else (element, element)
            case "map":
                return over.parameters[0], over.parameters[1]
            case "dyn" | "error" | "param":
                self._assign(DYN, over)
                return DYN, DYN
        self._report(
            node.range.id,
            f"expression of type '{format_type(over)}' cannot be range of a comprehension "
            "(must be list, map, or dynamic)",
        )
        return ERROR, ERROR

    # Types.

    def _assign(self, one: CelType, other: CelType) -> bool:
        attempt = self.substitutions.assignable(one, other)
        if attempt is None:
            return False
        self.substitutions = attempt
        return True

    def _assert(self, node: Node, expected: CelType) -> None:
        found = self.types[node.id]
        if not self._assign(expected, found):
            self._mismatch(node.id, expected, found)

    def _type_variable(self) -> CelType:
        self.type_variables += 1
        return param(f"_var{self.type_variables - 1}")


def _field_name(node: Node) -> str:
    return str(node.value) if isinstance(node, Literal) else ""
