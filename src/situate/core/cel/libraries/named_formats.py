"""Kubernetes' named formats in expressions: `format.dns1123Label().validate(text)`."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from math import ceil
from typing import Any, Final

from situate.core.cel.errors import no_such_overload
from situate.core.cel.functions import Function, Library, member, overload
from situate.core.cel.libraries.go_urls import URLError, parse_request_uri
from situate.core.cel.meter import REGEX_FACTOR, STRING_FACTOR, ceil_of, one, plain_size
from situate.core.cel.types import STRING, list_of, optional_of, struct
from situate.core.cel.values import NONE, ExtensionValue, OptionalValue, Value

FORMAT: Final = struct("kubernetes.NamedFormat")

_LABEL: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN: Final = rf"{_LABEL}(\.{_LABEL})*"
_LABEL_1035: Final = "[a-z]([-a-z0-9]*[a-z0-9])?"
_KEY: Final = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_VALUE: Final = "(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?"
_UUID = re.compile("[0-9a-fA-F]{8}-?(?:[0-9a-fA-F]{4}-?){3}[0-9a-fA-F]{12}")
_BASE64 = re.compile("(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})")
_DATE = re.compile("([0-9]{4})-([0-9]{2})-([0-9]{2})")
_TIME = re.compile("([0-9]{2}):([0-9]{2}):([0-9]{2})(.[0-9]+)?(?:z|[+-][0-9]{2}:[0-9]{2})")

_LABEL_RULE: Final = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', "
    "and must start and end with an alphanumeric character"
)
_SUBDOMAIN_RULE: Final = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', "
    "and must start and end with an alphanumeric character"
)
_LABEL_1035_RULE: Final = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', "
    "start with an alphabetic character, and end with an alphanumeric character"
)
_KEY_RULE: Final = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character"
)
_VALUE_RULE: Final = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', "
    "and must start and end with an alphanumeric character"
)

Check = Callable[[str], list[str]]


class FormatValue(ExtensionValue):
    __slots__ = ("rule",)
    type_name = "kubernetes.NamedFormat"
    go_name = "Format"
    unhashable = "func(string) []string"

    def __init__(self, rule: "FormatRule") -> None:
        self.rule = rule

    def equal(self, other: Value) -> Value:
        return self.rule.name == other.rule.name if isinstance(other, FormatValue) else no_such_overload()


@dataclass(frozen=True, slots=True)
class FormatRule:
    name: str
    check: Check
    regex_size: int


def _too_long(limit: int) -> str:
    return f"must be no more than {limit} bytes"


def _rule(message: str, pattern: str, *examples: str) -> str:
    shown = " or ".join(f"'{example}', " for example in examples)
    return f"{message} (e.g. {shown}regex used for validation is '{pattern}')"


def _matching(pattern: str, limit: int, message: str, *examples: str) -> Check:
    compiled = re.compile(pattern)

    def check(text: str) -> list[str]:
        wrong = [_too_long(limit)] if len(text.encode()) > limit else []
        if not compiled.fullmatch(text):
            wrong.append(_rule(message, pattern, *examples))
        return wrong

    return check


_subdomain = _matching(_SUBDOMAIN, 253, _SUBDOMAIN_RULE, "example.com")
_label_1035 = _matching(_LABEL_1035, 63, _LABEL_1035_RULE, "my-name", "abc-123")
_label_value = _matching(_VALUE, 63, _VALUE_RULE, "MyValue", "my_value", "12345")


def _label(text: str) -> list[str]:
    wrong = [_too_long(63)] if len(text.encode()) > 63 else []
    if not re.fullmatch(_LABEL, text):
        dotted = re.fullmatch(_SUBDOMAIN, text)
        wrong.append("must not contain dots" if dotted else _rule(_LABEL_RULE, _LABEL, "my-name", "123-abc"))
    return wrong


def _key(text: str) -> list[str]:
    parts = text.split("/")
    wrong: list[str] = []
    if len(parts) > 2:
        rule = _rule(_KEY_RULE, _KEY, "MyName", "my.name", "123-abc")
        return [f"a valid label key {rule} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"]
    if len(parts) == 2:
        if not parts[0]:
            wrong.append("prefix part must be non-empty")
        else:
            wrong += [f"prefix part {message}" for message in _subdomain(parts[0])]
    name = parts[-1]
    if not name:
        wrong.append("name part must be non-empty")
    elif len(name.encode()) > 63:
        wrong.append(f"name part {_too_long(63)}")
    if not re.fullmatch(_KEY, name):
        wrong.append(f"name part {_rule(_KEY_RULE, _KEY, 'MyName', 'my.name', '123-abc')}")
    return wrong


def _prefix(check: Check) -> Check:
    def run(text: str) -> list[str]:
        return check(f"{text[:-2]}a" if len(text) > 1 and text.endswith("-") else text)

    return run


def _uri(text: str) -> list[str]:
    try:
        parse_request_uri(text)
    except URLError as error:
        return [str(error)]
    return []


def _is_date(text: str) -> bool:
    found = _DATE.fullmatch(text)
    if found is None:
        return False
    year, month, day = map(int, found.groups())
    try:
        date(year or 400, month, day)
    except ValueError:
        return False
    return True


def _is_date_time(text: str) -> bool:
    if len(text) < 4:
        return False
    parts = text.lower().split("t")
    if len(parts) < 2 or not _is_date(parts[0]):
        return False
    found = _TIME.fullmatch(parts[1])
    return found is not None and found[1] <= "23" and found[2] <= "59" and found[3] <= "59"


def _unless(test: Callable[[str], Any], message: str) -> Check:
    return lambda text: [] if test(text) else [message]


_RULES = {
    "dns1123Label": FormatRule("DNS1123Label", _label, 30),
    "dns1123Subdomain": FormatRule("DNS1123Subdomain", _subdomain, 60),
    "dns1035Label": FormatRule("DNS1035Label", _label_1035, 30),
    "qualifiedName": FormatRule("QualifiedName", _key, 60),
    "dns1123LabelPrefix": FormatRule("DNS1123LabelPrefix", _prefix(_label), 30),
    "dns1123SubdomainPrefix": FormatRule("DNS1123SubdomainPrefix", _prefix(_subdomain), 60),
    "dns1035LabelPrefix": FormatRule("DNS1035LabelPrefix", _prefix(_label_1035), 30),
    "labelValue": FormatRule("LabelValue", _label_value, 40),
    "uri": FormatRule("URI", _uri, 1103),
    "uuid": FormatRule("uuid", _unless(_UUID.fullmatch, "does not match the UUID format"), 70),
    "byte": FormatRule("byte", _unless(_BASE64.fullmatch, "invalid base64"), 84),
    "date": FormatRule("date", _unless(_is_date, "invalid date"), 71),
    "datetime": FormatRule("datetime", _unless(_is_date_time, "invalid datetime"), 71),
}


def _validate(value: FormatValue, text: str) -> Any:
    wrong: list[Any] = [*value.rule.check(text)]
    return OptionalValue(wrong) if wrong else NONE


def _named(name: str) -> Any:
    rule = _RULES.get(name)
    return NONE if rule is None else OptionalValue(FormatValue(rule))


def _validate_cost(args: Sequence[Any], result: Any, overload_id: str) -> int | None:
    if not isinstance(args[0], FormatValue):
        return None
    text = ceil((1.0 + plain_size(args[1])) * STRING_FACTOR)
    return text * ceil_of(args[0].rule.regex_size, REGEX_FACTOR)


def _constant(name: str, rule: FormatRule) -> Function:
    return Function(f"format.{name}", (overload(f"format.{name}", (), FORMAT, lambda: FormatValue(rule)),))


LIBRARY = Library(
    (
        Function(
            "validate",
            (member("format-validate", (FORMAT, STRING), optional_of(list_of(STRING)), _validate),),
            cost=_validate_cost,
        ),
        Function("format.named", (overload("format-named", (STRING,), optional_of(FORMAT), _named),), cost=one),
        *(_constant(name, rule) for name, rule in _RULES.items()),
    )
)
