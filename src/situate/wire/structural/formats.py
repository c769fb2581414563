"""The formats of text that a schema may ask for, as kube-apiserver reads them. Others are ignored."""

import re
from collections.abc import Callable, Mapping
from datetime import date
from email.utils import parseaddr
from typing import Final

from situate.core.cel.libraries.addresses import AddressError, parse_address
from situate.core.cel.libraries.go_urls import URLError, parse_request_uri
from situate.core.cel.regex import compile_regex
from situate.core.model.duration import parse_duration

Check = Callable[[str], bool]

_CHARS: Final = r"[a-zA-Z0-9\p{S}\p{L}]"
_HOSTNAME: Final = (
    rf"^({_CHARS}((-?{_CHARS}{{0,62}})?)"
    rf"|({_CHARS}(([a-zA-Z0-9-\p{{S}}\p{{L}}]{{0,61}}{_CHARS})?)(\.)){{1,}}([a-zA-Z\p{{L}}]){{2,63}})$"
)
"""One label with at most one dash, or several and a top level of letters."""
_MAX_HOSTNAME, _MAX_LABEL = 255, 63
_DURATION_PART: Final = re.compile(r"(?<!\d)\d++\s*+([A-Za-zµ]++)")
"""Begins where digits begin, and never goes back, so that it takes time linear in the text."""
_UNITS: Final = ("ns", "us", "µs", "ms", "s", "m", "h", "hr", "d", "w", "wk")
_UNIT_PREFIXES: Final = ("nano", "micro", "milli", "sec", "min", "hour", "day", "week")
_TIME: Final = re.compile("([0-9]{2}):([0-9]{2}):([0-9]{2})(.[0-9]+)?(z|([+-][0-9]{2}:[0-9]{2}))")
_CARD: Final = re.compile(
    r"(?:4[0-9]{12}(?:[0-9]{3})?|5[1-5][0-9]{14}|6(?:011|5[0-9][0-9])[0-9]{12}|3[47][0-9]{13}"
    r"|3(?:0[0-5]|[68][0-9])[0-9]{11}|(?:2131|1800|35\d{3})\d{11})"
)
_COLOUR: Final = r"(0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])"
_MAX_EMAIL: Final = 2_048
"""Characters; an address has at most 320, and may have a name before it."""
_LENGTH_OF_SSN: Final = 11
_ISBN_10, _ISBN_13 = 10, 13


def _matching(pattern: str, flags: int = re.ASCII) -> Check:
    compiled = re.compile(pattern, flags)
    return lambda text: compiled.fullmatch(text) is not None


def _uri(text: str) -> bool:
    try:
        parse_request_uri(text)
    except URLError:
        return False
    return True


def _email(text: str) -> bool:
    if len(text) > _MAX_EMAIL:
        return False
    try:
        name, _, domain = parseaddr(text)[1].rpartition("@")
    except RecursionError:  # parseaddr calls itself for each comment and group
        return False
    return bool(name and domain) and " " not in domain and not text.endswith("@")


def _hostname(text: str) -> bool:
    if len(text.encode()) > _MAX_HOSTNAME or not compile_regex(_HOSTNAME).matches(text):
        return False
    return all(len(label.encode()) <= _MAX_LABEL for label in text.split("."))


def _address(text: str, mark: str) -> bool:
    plain = ".".join(part.lstrip("0") or part[:1] for part in text.split(".")) if mark == "." else text
    try:
        parse_address(plain)
    except AddressError:
        return False
    return mark in text and "%" not in text


def _cidr(text: str) -> bool:
    address, slash, length = text.partition("/")
    if not slash or not length.isdecimal() or not length.isascii():
        return False
    four = _address(address, ".") and ":" not in address
    return (four or _address(address, ":")) and int(length) <= (32 if four else 128)


def _date(text: str) -> bool:
    if not re.fullmatch("[0-9]{4}-[0-9]{2}-[0-9]{2}", text):
        return False
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True


def _datetime(text: str) -> bool:
    """A date, a `t`, and a time with a zone."""
    if len(text) < len("yyyy-mm-ddthh"):
        return False
    day, _, time = text.lower().partition("t")
    found = _TIME.fullmatch(time)
    if not found or not _date(day):
        return False
    return found[1] <= "23" and found[2] <= "59" and found[3] <= "59"


def _duration(text: str) -> bool:
    try:
        parse_duration(text)
    except ValueError:
        pass
    else:
        return True
    for found in _DURATION_PART.finditer(text):
        small = found[1].lower()
        if small in _UNITS or small.startswith(_UNIT_PREFIXES):
            return True
    return False


def _isbn(text: str, digits: int) -> bool:
    plain = re.sub(r"[\s-]+", "", text)
    if digits == _ISBN_10:
        if not re.fullmatch("[0-9]{9}X|[0-9]{10}", plain):
            return False
        values = [10 if char == "X" else int(char) for char in plain]
        return sum((at + 1) * value for at, value in enumerate(values)) % 11 == 0
    if not re.fullmatch("[0-9]{13}", plain):
        return False
    return sum(int(char) * (1 if at % 2 == 0 else 3) for at, char in enumerate(plain)) % 10 == 0


def _credit_card(text: str) -> bool:
    plain = re.sub("[^0-9]+", "", text)
    if not _CARD.fullmatch(plain):
        return False
    total = 0
    for at, char in enumerate(reversed(plain)):
        digit = int(char) * (1 + at % 2)
        total += digit % 10 + digit // 10
    return total % 10 == 0


def _mac(text: str) -> bool:
    for separator, width in ((":", 2), ("-", 2), (".", 4)):
        parts = text.split(separator)
        if len(parts) * width in (12, 16, 40) and all(re.fullmatch(f"[0-9a-fA-F]{{{width}}}", one) for one in parts):
            return True
    return False


_UUID: Final = "(?i)[0-9a-f]{8}-?[0-9a-f]{4}-?%s-?%s-?[0-9a-f]{12}"
_LABEL: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_is_ssn: Final = _matching(r"\d{3}[- ]?\d{2}[- ]?\d{4}")
_is_short_name: Final = _matching(_LABEL)
_is_long_name: Final = _matching(rf"{_LABEL}(\.{_LABEL})*")

FORMATS: Final[Mapping[str, Check]] = {
    "bsonobjectid": _matching("[0-9a-fA-F]{24}"),
    "byte": _matching("(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})"),
    "cidr": _cidr,
    "creditcard": _credit_card,
    "date": _date,
    "datetime": _datetime,
    "duration": _duration,
    "email": _email,
    "hexcolor": _matching("#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})"),
    "hostname": _hostname,
    "ipv4": lambda text: _address(text, "."),
    "ipv6": lambda text: _address(text, ":"),
    "isbn": lambda text: _isbn(text, _ISBN_10) or _isbn(text, _ISBN_13),
    "isbn10": lambda text: _isbn(text, _ISBN_10),
    "isbn13": lambda text: _isbn(text, _ISBN_13),
    "k8slongname": lambda text: len(text) <= 253 and _is_long_name(text),
    "k8sshortname": lambda text: len(text) <= _MAX_LABEL and _is_short_name(text),
    "mac": _mac,
    "password": lambda _: True,
    "rgbcolor": _matching(rf"rgb\(\s*{_COLOUR}\s*,\s*{_COLOUR}\s*,\s*{_COLOUR}\s*\)"),
    "ssn": lambda text: len(text) == _LENGTH_OF_SSN and _is_ssn(text),
    "uri": _uri,
    "uuid": _matching(_UUID % ("[0-9a-f]{4}", "[0-9a-f]{4}")),
    "uuid3": _matching(_UUID % ("3[0-9a-f]{3}", "[0-9a-f]{4}")),
    "uuid4": _matching(_UUID % ("4[0-9a-f]{3}", "[89ab][0-9a-f]{3}")),
    "uuid5": _matching(_UUID % ("5[0-9a-f]{3}", "[89ab][0-9a-f]{3}")),
}
"""By their names without dashes."""
_NUMBERS: Final = {"integer": ("int32", "int64"), "number": ("float", "double")}


def recognised(kind: str, name: str) -> str:
    """The format, if it means something for this type of value, else ""."""
    if kind in ("", "string"):
        return name if name.replace("-", "") in FORMATS else ""
    return name if name in _NUMBERS.get(kind, ()) else ""
