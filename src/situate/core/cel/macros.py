"""Macros: calls that the parser turns into loops and tests before any type is known."""

from collections.abc import Callable
from dataclasses import dataclass

from situate.core.cel.ast import (
    Call,
    Comprehension,
    Ident,
    ListLiteral,
    Literal,
    MapEntry,
    MapLiteral,
    MessageLiteral,
    Node,
    Select,
)

ACCUMULATOR = "@result"
OLD_ACCUMULATOR = "__result__"
UNUSED = "#unused"
OVERWRITES = "iteration variable overwrites accumulator variable"


class MacroError(ValueError):
    """The macro's arguments are not what it takes; `node` is the one to blame."""

    def __init__(self, node: Node, message: str) -> None:
        super().__init__(message)
        self.node = node


@dataclass(slots=True)
class Builder:
    """Makes the nodes of one expansion; each gets a number of its own at the macro's position."""

    next_id: Callable[[], int]
    copy_id: Callable[[int], int]  # a number at the position of another

    def literal(self, value: object) -> Node:
        return Literal(self.next_id(), value)

    def list(self, *elements: Node) -> Node:
        return ListLiteral(self.next_id(), list(elements))

    def map(self, *entries: MapEntry) -> Node:
        return MapLiteral(self.next_id(), list(entries))

    def ident(self, name: str) -> Node:
        return Ident(self.next_id(), name)

    def result(self) -> Node:
        return self.ident(ACCUMULATOR)

    def call(self, function: str, *args: Node) -> Node:
        return Call(self.next_id(), function, None, list(args))

    def member_call(self, function: str, target: Node, *args: Node) -> Node:
        return Call(self.next_id(), function, target, list(args))

    def has(self, operand: Node, field: str) -> Node:
        return Select(self.next_id(), operand, field, test_only=True)

    def loop(
        self, over: Node, variables: tuple[str, str], name: str, start: Node, condition: Node, step: Node, result: Node
    ) -> Node:
        return Comprehension(self.next_id(), over, *variables, name, start, condition, step, result)

    def copy(self, node: Node) -> Node:
        """The same expression with numbers of its own, at the same positions."""
        new = self.copy_id(node.id)
        if isinstance(node, (Literal, Ident)):
            return Literal(new, node.value) if isinstance(node, Literal) else Ident(new, node.name)
        match node:
            case Select():
                return Select(new, self.copy(node.operand), node.field, node.test_only)
            case Call():
                # A member call's arguments are copied before its target.
                args = [self.copy(arg) for arg in node.args]
                target = None if node.target is None else self.copy(node.target)
                return Call(new, node.function, target, args)
            case ListLiteral():
                return ListLiteral(new, [self.copy(element) for element in node.elements], node.optional)
            case MapLiteral():
                return MapLiteral(new, [self._copy_entry(entry) for entry in node.entries])
            case MessageLiteral():
                return MessageLiteral(new, node.type_name, [self._copy_entry(entry) for entry in node.entries])
            case Comprehension():
                over, start = self.copy(node.range), self.copy(node.start)
                condition, step, result = self.copy(node.condition), self.copy(node.step), self.copy(node.result)
                return Comprehension(
                    new, over, node.variable, node.variable2, node.accumulator, start, condition, step, result
                )
        return node

    def _copy_entry(self, entry: MapEntry) -> MapEntry:
        new = self.next_id()
        key = entry.key if isinstance(entry.key, str) else self.copy(entry.key)
        return MapEntry(new, key, self.copy(entry.value), entry.optional)


# A macro on something gets that as its target; the others ignore theirs.
Expander = Callable[[Builder, Node, list[Node]], Node | None]


def _variable(node: Node, message: str) -> str:
    if not isinstance(node, Ident):
        raise MacroError(node, message)
    if node.name in (ACCUMULATOR, OLD_ACCUMULATOR):
        raise MacroError(node, OVERWRITES)
    return node.name


def _two_variables(args: list[Node]) -> tuple[str, str]:
    names: list[str] = []
    for node in args[:2]:
        if not isinstance(node, Ident):
            raise MacroError(node, "argument must be a simple name")
        names.append(node.name)
    if names[0] == names[1]:
        raise MacroError(args[1], f"duplicate variable name: {names[0]}")
    for node, name in zip(args, names, strict=False):
        if name in (ACCUMULATOR, OLD_ACCUMULATOR):
            raise MacroError(node, OVERWRITES)
    return names[0], names[1]


def _has(build: Builder, target: Node, args: list[Node]) -> Node:
    if not isinstance(args[0], Select):
        raise MacroError(args[0], "invalid argument to has() macro")
    return build.has(args[0].operand, args[0].field)


def _quantifier(kind: str) -> Expander:
    def expand(build: Builder, target: Node, args: list[Node]) -> Node:
        if len(args) == 3:
            variables = _two_variables(args)
        else:
            variables = (_variable(args[0], "argument must be a simple name"), "")
        test = args[-1]
        if kind == "all":
            start = build.literal(True)
            condition = build.call("@not_strictly_false", build.result())
            step = build.call("_&&_", build.result(), test)
            result = build.result()
        elif kind == "exists":
            start = build.literal(False)
            condition = build.call("@not_strictly_false", build.call("!_", build.result()))
            step = build.call("_||_", build.result(), test)
            result = build.result()
        else:
            start = build.literal(0)
            condition = build.literal(True)
            counted = build.call("_+_", build.result(), build.literal(1))
            step = build.call("_?_:_", test, counted, build.result())
            result = build.call("_==_", build.result(), build.literal(1))
        return build.loop(target, variables, ACCUMULATOR, start, condition, step, result)

    return expand


def _map(build: Builder, target: Node, args: list[Node]) -> Node:
    name = _variable(args[0], "argument is not an identifier")
    start, condition = build.list(), build.literal(True)
    step = build.call("_+_", build.result(), build.list(args[-1]))
    if len(args) == 3:
        step = build.call("_?_:_", args[1], step, build.result())
    return build.loop(target, (name, ""), ACCUMULATOR, start, condition, step, build.result())


def _filter(build: Builder, target: Node, args: list[Node]) -> Node:
    name = _variable(args[0], "argument is not an identifier")
    start, condition = build.list(), build.literal(True)
    step = build.call("_+_", build.result(), build.list(args[0]))
    step = build.call("_?_:_", args[1], step, build.result())
    return build.loop(target, (name, ""), ACCUMULATOR, start, condition, step, build.result())


def _transform(kind: str) -> Expander:
    def expand(build: Builder, target: Node, args: list[Node]) -> Node:
        variables = _two_variables(args)
        if kind == "list":
            step = build.call("_+_", build.result(), build.list(args[-1]))
        elif kind == "map":
            step = build.call("cel.@mapInsert", build.result(), build.ident(variables[0]), args[-1])
        else:
            step = build.call("cel.@mapInsert", build.result(), args[-1])
        if len(args) == 4:
            step = build.call("_?_:_", args[2], step, build.result())
        start = build.list() if kind == "list" else build.map()
        return build.loop(target, variables, ACCUMULATOR, start, build.literal(True), step, build.result())

    return expand


def _bind(build: Builder, target: Node, args: list[Node]) -> Node | None:
    if not isinstance(target, Ident) or target.name != "cel":
        return None
    if not isinstance(args[0], Ident):
        raise MacroError(args[0], "cel.bind() variable names must be simple identifiers")
    name = args[0].name
    over, condition, step = build.list(), build.literal(False), build.ident(name)
    return build.loop(over, (UNUSED, ""), name, args[1], condition, step, args[2])


def _opt_map(name: str, wrap: bool) -> Expander:
    def expand(build: Builder, target: Node, args: list[Node]) -> Node:
        if not isinstance(args[0], Ident):
            raise MacroError(args[0], f"{name}() variable name must be a simple identifier")
        variable = args[0].name
        present = build.member_call("hasValue", target)
        over = build.list()
        start = build.member_call("value", build.copy(target))
        condition, step = build.literal(False), build.ident(variable)
        inner = build.loop(over, (UNUSED, ""), variable, start, condition, step, args[1])
        if wrap:
            inner = build.call("optional.of", inner)
        return build.call("_?_:_", present, inner, build.call("optional.none"))

    return expand


# (name, number of arguments, whether it is called on something)
Macros = dict[tuple[str, int, bool], Expander]

STANDARD_MACROS: Macros = {
    ("has", 1, False): _has,
    ("all", 2, True): _quantifier("all"),
    ("exists", 2, True): _quantifier("exists"),
    ("exists_one", 2, True): _quantifier("exists_one"),
    ("map", 2, True): _map,
    ("map", 3, True): _map,
    ("filter", 2, True): _filter,
}
TWO_VARIABLE_MACROS: Macros = {
    ("all", 3, True): _quantifier("all"),
    ("exists", 3, True): _quantifier("exists"),
    ("exists_one", 3, True): _quantifier("exists_one"),
    ("existsOne", 3, True): _quantifier("exists_one"),
    ("transformList", 3, True): _transform("list"),
    ("transformList", 4, True): _transform("list"),
    ("transformMap", 3, True): _transform("map"),
    ("transformMap", 4, True): _transform("map"),
    ("transformMapEntry", 3, True): _transform("entry"),
    ("transformMapEntry", 4, True): _transform("entry"),
}
BINDING_MACROS: Macros = {("bind", 3, True): _bind}
OPTIONAL_MACROS: Macros = {
    ("optMap", 2, True): _opt_map("optMap", True),
    ("optFlatMap", 2, True): _opt_map("optFlatMap", False),
}
