"""The values of literals in the text of an expression."""

from situate.core.cel.values import INT64_MAX, INT64_MIN, UINT64_MAX, UInt

CANNOT_UNESCAPE = "unable to unescape string"
BAD_CODE_POINT = "invalid unicode code point"

_SIMPLE = {
    "a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "\\": "\\", "'": "'", '"': '"',
    "`": "`", "?": "?",
}  # fmt: skip


class LiteralError(ValueError):
    """The literal's text has no value; the message is the parser's."""


def read_int(text: str, negative: bool) -> int:
    number = int(text, 16) if text.startswith("0x") else _decimal(text)
    number = -number if negative else number
    if not INT64_MIN <= number <= INT64_MAX:
        raise LiteralError("invalid int literal")
    return number


def read_uint(text: str) -> UInt:
    number = int(text[:-1], 16) if text.startswith("0x") else _decimal(text[:-1])
    if number > UINT64_MAX:
        raise LiteralError("invalid uint literal")
    return UInt(number)


def _decimal(text: str) -> int:
    digits = text.lstrip("0")
    return int(digits[:30] or "0") if len(digits) <= 30 else UINT64_MAX + 1


def read_double(text: str, negative: bool) -> float:
    number = float(text)
    if number in (float("inf"), float("-inf")):
        raise LiteralError("invalid double literal")
    return -number if negative else number


def read_string(text: str) -> str:
    body, escaped = _body(text)
    if not escaped:
        return body
    return "".join(_unescape(body, False))


def read_bytes(text: str) -> bytes:
    body, escaped = _body(text[1:])
    if not escaped:
        return body.encode()
    return b"".join(part.encode("latin-1") if is_byte else part.encode() for part, is_byte in _unescape_bytes(body))


def _body(text: str) -> tuple[str, bool]:
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    raw = text[0] in "rR"
    if raw:
        text = text[1:]
    text = text[3:-3] if len(text) >= 6 and text[:3] in ('"""', "'''") else text[1:-1]
    return text, not raw and "\\" in text


def _unescape(body: str, as_bytes: bool) -> list[str]:
    return [part for part, _ in _parts(body, as_bytes)]


def _unescape_bytes(body: str) -> list[tuple[str, bool]]:
    return _parts(body, True)


def _parts(body: str, as_bytes: bool) -> list[tuple[str, bool]]:
    """Runs of characters; the flag says that the run is one byte."""
    parts: list[tuple[str, bool]] = []
    position = 0
    while (escape := body.find("\\", position)) >= 0:
        if escape > position:
            parts.append((body[position:escape], False))
        part, position = _escape(body, escape + 1, as_bytes)
        parts.append(part)
    if position < len(body):
        parts.append((body[position:], False))
    return parts


def _escape(body: str, at: int, as_bytes: bool) -> tuple[tuple[str, bool], int]:
    kind = body[at]
    if (simple := _SIMPLE.get(kind)) is not None:
        return (simple, False), at + 1
    if kind in "xX":
        code, after = int(body[at + 1 : at + 3], 16), at + 3
    elif kind in "uU":
        if as_bytes:
            raise LiteralError(CANNOT_UNESCAPE)
        length = 4 if kind == "u" else 8
        code, after = int(body[at + 1 : at + 1 + length], 16), at + 1 + length
    else:
        code, after = int(body[at : at + 3], 8), at + 3
    if as_bytes:
        return (chr(code), True), after
    if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
        raise LiteralError(BAD_CODE_POINT)
    return (chr(code), False), after
