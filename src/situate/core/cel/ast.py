"""The tree of a parsed expression. A node has a number; the parser keeps each number's position in the text."""

from dataclasses import dataclass


@dataclass(slots=True)
class Literal:
    id: int
    value: object


@dataclass(slots=True)
class Ident:
    id: int
    name: str


@dataclass(slots=True)
class Select:
    id: int
    operand: "Node"
    field: str
    test_only: bool = False


@dataclass(slots=True)
class Call:
    id: int
    function: str
    target: "Node | None"
    args: "list[Node]"


@dataclass(slots=True)
class ListLiteral:
    id: int
    elements: "list[Node]"
    optional: frozenset[int] = frozenset()


@dataclass(slots=True)
class MapEntry:
    """One entry of a map (`key` is a node) or one field of a message (`key` is its name)."""

    id: int
    key: "Node | str"
    value: "Node"
    optional: bool


@dataclass(slots=True)
class MapLiteral:
    id: int
    entries: list[MapEntry]


@dataclass(slots=True)
class MessageLiteral:
    id: int
    type_name: str
    entries: list[MapEntry]


@dataclass(slots=True)
class Comprehension:
    id: int
    range: "Node"
    variable: str
    variable2: str  # "" for a loop over one variable
    accumulator: str
    start: "Node"
    condition: "Node"
    step: "Node"
    result: "Node"


@dataclass(slots=True)
class Broken:
    """What a mistake left behind; the expression does not compile."""

    id: int


Node = Literal | Ident | Select | Call | ListLiteral | MapLiteral | MessageLiteral | Comprehension | Broken


def qualified_name(node: Node | None) -> str | None:
    """`a.b.c` as a name, if the node is nothing but that."""
    fields: list[str] = []
    while isinstance(node, Select) and not node.test_only:
        fields.append(node.field)
        node = node.operand
    if not isinstance(node, Ident):
        return None
    return ".".join([node.name, *reversed(fields)])


def children(node: Node) -> list[Node]:
    match node:
        case Select():
            return [node.operand]
        case Call():
            return [*([node.target] if node.target is not None else []), *node.args]
        case ListLiteral():
            return node.elements
        case MapLiteral() | MessageLiteral():
            return [part for entry in node.entries for part in (entry.key, entry.value) if not isinstance(part, str)]
        case Comprehension():
            return [node.range, node.start, node.condition, node.step, node.result]
        case _:
            return []


def map_key_node(entry: MapEntry) -> Node:
    if isinstance(entry.key, str):
        raise TypeError("a field of a message has no key")
    return entry.key
