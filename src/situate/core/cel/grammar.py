"""Small parts of the grammar: operators, reserved names, and the values of literal tokens."""

from situate.core.cel import lexer
from situate.core.cel.ast import Call, Node
from situate.core.cel.lexer import Token
from situate.core.cel.literals import read_bytes, read_double, read_int, read_string, read_uint

RESERVED = frozenset(
    (
        "as", "break", "const", "continue", "else", "false", "for", "function", "if", "import", "in", "let", "loop",
        "package", "namespace", "null", "return", "true", "var", "void", "while",
    )
)  # fmt: skip
_RELATIONS = {
    "'<'": "_<_", "'<='": "_<=_", "'>='": "_>=_", "'>'": "_>_", "'=='": "_==_", "'!='": "_!=_", "'in'": "@in",
}  # fmt: skip
_PRODUCTS = {"'*'": "_*_", "'/'": "_/_", "'%'": "_%_"}
_SUMS = {"'+'": "_+_", "'-'": "_-_"}


class GrammarError(Exception):
    """The text is not in the grammar."""


def operator_of(kind: str) -> tuple[int, str]:
    """How tightly the operator binds, and its function; 0 for what is none."""
    if (name := _RELATIONS.get(kind)) is not None:
        return 1, name
    if (name := _SUMS.get(kind)) is not None:
        return 2, name
    if (name := _PRODUCTS.get(kind)) is not None:
        return 3, name
    return 0, ""


def balanced(function: str, terms: list[Node], numbers: list[int]) -> Node:
    """A chain of one logical operator as a balanced tree, so that a long chain is not deep."""

    def build(low: int, high: int) -> Node:
        middle = (low + high + 1) // 2
        left = terms[middle] if middle == low else build(low, middle - 1)
        right = terms[middle + 1] if middle == high else build(middle + 1, high)
        return Call(numbers[middle], function, None, [left, right])

    return terms[0] if len(terms) == 1 else build(0, len(numbers) - 1)


def literal_value(token: Token, negative: bool) -> object:
    match token.kind:
        case lexer.NUM_INT:
            return read_int(token.text, negative)
        case lexer.NUM_FLOAT:
            return read_double(token.text, negative)
    if negative:
        raise GrammarError
    match token.kind:
        case lexer.NUM_UINT:
            return read_uint(token.text)
        case lexer.STRING:
            return read_string(token.text)
        case lexer.BYTES:
            return read_bytes(token.text)
        case "'true'":
            return True
        case "'false'":
            return False
        case "'null'":
            return None
    raise GrammarError
