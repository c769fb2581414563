"""Characters to tokens, with the longest match, as CEL's grammar has them."""

import re
from dataclasses import dataclass
from typing import Final

# The grammar's names of tokens: a quoted text for a fixed one, a word for the others. Messages print them.
IDENTIFIER: Final = "IDENTIFIER"
ESCAPED_IDENTIFIER: Final = "ESC_IDENTIFIER"
NUM_FLOAT: Final = "NUM_FLOAT"
NUM_INT: Final = "NUM_INT"
NUM_UINT: Final = "NUM_UINT"
STRING: Final = "STRING"
BYTES: Final = "BYTES"
EOF: Final = "<EOF>"

_FIXED = (
    "==", "!=", "<=", ">=", "&&", "||", "<", ">", "[", "]", "{", "}", "(", ")", ".", ",", "-", "!", "?", ":", "+", "*",
    "/", "%",
)  # fmt: skip
_WORDS = frozenset(("in", "true", "false", "null"))

_HIDDEN = re.compile(r"(?:[\t \r\n\f]+|//[^\n]*)")
_NUMBER = re.compile(
    r"(?P<uint>0x[0-9a-fA-F]+[uU]|[0-9]+[uU])"
    r"|(?P<float>[0-9]+\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+|\.[0-9]+(?:[eE][+-]?[0-9]+)?)"
    r"|(?P<int>0x[0-9a-fA-F]+|[0-9]+)"
)
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ESCAPED = re.compile(r"`[A-Za-z0-9_.\-/ ]+`")
_ESCAPE = r"\\(?:[abfnrtv\"'\\?`]|[0-3][0-7][0-7]|[xX][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8})"
_QUOTED = {
    '"""': re.compile(rf'"""(?:{_ESCAPE}|[^\\])*?"""'),
    "'''": re.compile(rf"'''(?:{_ESCAPE}|[^\\])*?'''"),
    '"': re.compile(rf'"(?:{_ESCAPE}|[^\\"\n\r])*"'),
    "'": re.compile(rf"'(?:{_ESCAPE}|[^\\'\n\r])*'"),
}
_RAW = {
    '"""': re.compile(r'"""(?s:.*?)"""'),
    "'''": re.compile(r"'''(?s:.*?)'''"),
    '"': re.compile(r'"[^"\n\r]*"'),
    "'": re.compile(r"'[^'\n\r]*'"),
}
# How far the lexer gets into a text that does not end as it should.
_PARTIAL = {
    '"""': re.compile(rf'"""(?:{_ESCAPE}|[^\\])*'),
    "'''": re.compile(rf"'''(?:{_ESCAPE}|[^\\])*"),
    '"': re.compile(rf'"(?:{_ESCAPE}|[^\\"\n\r])*'),
    "'": re.compile(rf"'(?:{_ESCAPE}|[^\\'\n\r])*"),
}
_PARTIAL_ESCAPE = re.compile(r"\\(?:[0-3][0-7]?|[xX][0-9a-fA-F]?|u[0-9a-fA-F]{0,3}|U[0-9a-fA-F]{0,7})?")
_PREFIX = re.compile(r"[bB]?[rR]?(?=[\"'])")
_PARTIAL_ESCAPED = re.compile(r"`[A-Za-z0-9_.\-/ ]*")


@dataclass(slots=True)
class Token:
    kind: str
    text: str
    start: int


def tokenize(text: str) -> tuple[list[Token], list[tuple[int, str]]]:
    """The tokens, the last of them the end, and what is no token: each its position and text."""
    tokens: list[Token] = []
    wrong: list[tuple[int, str]] = []
    position, end = 0, len(text)
    while position < end:
        if hidden := _HIDDEN.match(text, position):
            position = hidden.end()
            continue
        token = _next(text, position)
        if token is None:
            after = _wrong_end(text, position)
            wrong.append((position, text[position:after]))
            position = after
            continue
        tokens.append(token)
        position += len(token.text)
    tokens.append(Token(EOF, "<EOF>", end))
    return tokens, wrong


def _next(text: str, position: int) -> Token | None:
    character = text[position]
    if character.isascii() and (character.isdigit() or character == "."):
        number = _NUMBER.match(text, position)
        if number is not None:
            kind = {"uint": NUM_UINT, "float": NUM_FLOAT, "int": NUM_INT}[number.lastgroup or ""]
            return Token(kind, number.group(), position)
    if character in "\"'bBrR":
        quoted = _quoted(text, position)
        if quoted is not None:
            return quoted
    if word := _WORD.match(text, position):
        found = word.group()
        return Token(f"'{found}'" if found in _WORDS else IDENTIFIER, found, position)
    if character == "`" and (escaped := _ESCAPED.match(text, position)):
        return Token(ESCAPED_IDENTIFIER, escaped.group(), position)
    for fixed in _FIXED:
        if text.startswith(fixed, position):
            return Token(f"'{fixed}'", fixed, position)
    return None


def _quoted(text: str, position: int) -> Token | None:
    prefix = _PREFIX.match(text, position)
    if prefix is None:
        return None
    start = prefix.end()
    shapes = _RAW if "r" in prefix.group().lower() else _QUOTED
    kind = BYTES if prefix.group()[:1] in ("b", "B") else STRING
    quote = text[start]
    best = None
    for opening in (quote * 3, quote):
        found = shapes[opening].match(text, start)
        if found is not None and (best is None or found.end() > best):
            best = found.end()
    return None if best is None else Token(kind, text[position:best], position)


def _wrong_end(text: str, position: int) -> int:
    """Where the lexer goes on after what is no token: behind the character at which it gave up."""
    prefix = _PREFIX.match(text, position)
    after = position
    if prefix is not None:
        start, raw = prefix.end(), "r" in prefix.group().lower()
        for opening in (text[start] * 3, text[start]):
            if not text.startswith(opening, start):
                continue
            if raw:
                stop = len(text)
                if len(opening) == 1:
                    ends = [found for found in (text.find(c, start + 1) for c in "\n\r") if found >= 0]
                    stop = min(ends, default=stop)
            else:
                partial = _PARTIAL[opening].match(text, start)
                stop = partial.end() if partial else start + 1
                if stop < len(text) and text[stop] == "\\":
                    escape = _PARTIAL_ESCAPE.match(text, stop)
                    stop = escape.end() if escape else stop
            after = max(after, stop)
    elif text[position] == "`" and (escaped := _PARTIAL_ESCAPED.match(text, position)):
        after = escaped.end()
    elif text[position] in "&|=":
        after = position + 1
    return min(after + 1, len(text))
