"""Sets of tokens that the grammar of CEL expects, and how messages print them."""

from situate.core.cel import lexer
from situate.core.cel.lexer import Token

_ORDER = (
    lexer.EOF, "'=='", "'!='", "'in'", "'<'", "'<='", "'>='", "'>'", "'&&'", "'||'", "'['", "']'", "'{'", "'}'", "'('",
    "')'", "'.'", "','", "'-'", "'!'", "'?'", "':'", "'+'", "'*'", "'/'", "'%'", "'true'", "'false'", "'null'",
    lexer.NUM_FLOAT, lexer.NUM_INT, lexer.NUM_UINT, lexer.STRING, lexer.BYTES, lexer.IDENTIFIER,
    lexer.ESCAPED_IDENTIFIER,
)  # fmt: skip
_RANK = {kind: rank for rank, kind in enumerate(_ORDER)}

Kinds = frozenset[str]

NOTHING: Kinds = frozenset()
LITERAL: Kinds = frozenset(
    (
        "'-'", "'true'", "'false'", "'null'", lexer.NUM_FLOAT, lexer.NUM_INT, lexer.NUM_UINT, lexer.STRING, lexer.BYTES,
    )
)  # fmt: skip
MEMBER: Kinds = LITERAL | {"'['", "'{'", "'('", "'.'", lexer.IDENTIFIER}
EXPRESSION: Kinds = MEMBER | {"'!'"}
OPTIONAL: Kinds = EXPRESSION | {"'?'"}
RELATIONS: Kinds = frozenset(("'<'", "'<='", "'>='", "'>'", "'=='", "'!='", "'in'"))
CALCULATIONS: Kinds = frozenset(("'*'", "'/'", "'%'", "'+'", "'-'"))
NAMES: Kinds = frozenset((lexer.IDENTIFIER, lexer.ESCAPED_IDENTIFIER))
PATH: Kinds = frozenset(("'.'", "'['"))


_QUANTIFIERS = ("all", "exists", "exists_one", "existsOne")
_LISTS = ("transformList", "transformMap", "transformMapEntry")


def wrong_macro_argument(name: str, is_member: bool, shapes: list[tuple[str, int]]) -> tuple[int, str] | None:
    """The position and complaint of the first argument that a macro does not take, if there is one."""
    count = len(shapes)
    if not is_member:
        if name == "has" and count == 1 and shapes[0][0] != "select":
            return shapes[0][1], "invalid argument to has() macro"
        return None
    variables, message = 0, "argument must be a simple name"
    if count == 2 and name in _QUANTIFIERS[:3]:
        variables = 1
    elif (count == 3 and name in _QUANTIFIERS) or (count in (3, 4) and name in _LISTS):
        variables = 2
    elif (name == "map" and count in (2, 3)) or (name == "filter" and count == 2):
        variables, message = 1, "argument is not an identifier"
    elif name in ("optMap", "optFlatMap") and count == 2:
        variables, message = 1, f"{name}() variable name must be a simple identifier"
    return next(((at, message) for kind, at in shapes[:variables] if kind != "ident"), None)


def set_text(kinds: Kinds) -> str:
    shown = sorted(kinds, key=lambda kind: _RANK.get(kind, len(_RANK)))
    return shown[0] if len(shown) == 1 else f"{{{', '.join(shown)}}}"


def token_text(token: Token) -> str:
    return quoted(token.text)


def quoted(text: str) -> str:
    escaped = text.replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t")
    return f"'{escaped}'"
