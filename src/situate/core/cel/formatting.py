"""Values as Go prints them, for messages and conversions."""

from math import isinf, isnan

from situate.core.cel.values import DurationValue, Value

_MAX_PLAIN_EXPONENT = 6


def go_float(value: float) -> str:
    """Go's %v and %g of a float."""
    if isnan(value):
        return "NaN"
    if isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    if value == 0:
        return "-0" if str(value).startswith("-") else "0"
    digits, exponent = _decimal(value)
    sign = "-" if value < 0 else ""
    if exponent < -4 or exponent >= _MAX_PLAIN_EXPONENT:
        rest = f".{digits[1:]}" if len(digits) > 1 else ""
        return f"{sign}{digits[0]}{rest}e{'-' if exponent < 0 else '+'}{abs(exponent):02d}"
    return sign + _plain(digits, exponent)


def _decimal(value: float) -> tuple[str, int]:
    """The shortest digits that read back as the value, and the exponent of the first."""
    text = f"{abs(value)!r}"
    mantissa, _, power = text.partition("e")
    whole, _, fraction = mantissa.partition(".")
    exponent = int(power or "0")
    digits = (whole + fraction).lstrip("0")
    leading = len(whole + fraction) - len(digits)
    exponent += len(whole) - 1 - leading
    return digits.rstrip("0") or "0", exponent


def _plain(digits: str, exponent: int) -> str:
    if exponent < 0:
        return "0." + "0" * (-exponent - 1) + digits
    if len(digits) <= exponent + 1:
        return digits + "0" * (exponent + 1 - len(digits))
    return f"{digits[: exponent + 1]}.{digits[exponent + 1 :]}"


def go_float_plain(value: float) -> str:
    """Go's strconv.FormatFloat(value, 'f', -1, 64)."""
    if isnan(value):
        return "NaN"
    if isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    if value == 0:
        return "-0" if str(value).startswith("-") else "0"
    digits, exponent = _decimal(value)
    return ("-" if value < 0 else "") + _plain(digits, exponent)


def duration_text(value: DurationValue) -> str:
    whole, rest = divmod(abs(value.nanos), 10**9)
    seconds = float(whole) + rest / 1e9
    return go_float_plain(-seconds if value.nanos < 0 else seconds) + "s"


def go_print(value: Value) -> str:
    """Go's %v of a value, where messages print one."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return go_float(value)
    if isinstance(value, bytes):
        return f"[{' '.join(map(str, value))}]"
    if isinstance(value, list):
        return f"[{', '.join(map(go_print, value))}]"
    return str(value)


_ESCAPES = {
    "\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v", "\\": "\\\\",
    '"': '\\"',
}  # fmt: skip


def go_quote(text: str) -> str:
    """Go's %q of a string."""
    parts: list[str] = []
    for character in text:
        if (escape := _ESCAPES.get(character)) is not None:
            parts.append(escape)
        elif character == " " or (character.isprintable() and not character.isspace()):
            parts.append(character)
        elif (code := ord(character)) < 0x80:
            parts.append(f"\\x{code:02x}")
        else:
            parts.append(f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}")
    return f'"{"".join(parts)}"'
