"""Rules for names in API objects. Each rule returns the problems of a name, in kube-apiserver's words.

`core.model.names` has the rules for label keys and values. Its limits are in bytes, those here in characters.
"""

import re
from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Final, TypeAlias

NameRule: TypeAlias = Callable[[str], tuple[str, ...]]

_CACHE_SIZE = 16_384
_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_WITH_UNDERSCORE = "_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_UNDERSCORED = rf"{_WITH_UNDERSCORE}(\.{_WITH_UNDERSCORE})*"
_DNS_1035 = "[a-z]([-a-z0-9]*[a-z0-9])?"
_CONFIG_KEY = "[-._a-zA-Z0-9]+"
_HEADER = "[-A-Za-z0-9]+"
_PERCENT = "[0-9]+%"

MAX_LABEL: Final = 63
MAX_SUBDOMAIN: Final = 253
MAX_PORT_NAME: Final = 15
MAX_PORT: Final = 65_535
MAX_ID: Final = 2**31 - 1


def pattern_text(rule: str, pattern: str, *examples: str) -> str:
    """kube-apiserver's message for text that does not match a pattern."""
    shown = " or ".join(f"'{example}', " for example in examples)
    return f"{rule} ({'e.g. ' if examples else ''}{shown}regex used for validation is '{pattern}')"


def _full(pattern: str) -> Callable[[str], object]:
    return re.compile(pattern, re.ASCII).fullmatch


_is_label, _is_subdomain, _is_dns_1035 = _full(_LABEL), _full(_SUBDOMAIN), _full(_DNS_1035)
_is_underscored = _full(_UNDERSCORED)
_WILDCARD = rf"\*\.{_SUBDOMAIN}"
_is_wildcard = _full(_WILDCARD)
_is_config_key, _is_header, _is_percent = _full(_CONFIG_KEY), _full(_HEADER), _full(_PERCENT)
_is_port_charset, _is_env_name = _full("[-a-z0-9]+"), _full("[ -<>-~]*")
_has_letter = re.compile("[a-z]").search

_ENDS = "and must start and end with an alphanumeric character"
_LABEL_RULE = pattern_text(
    f"a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', {_ENDS}",
    _LABEL,
    "my-name",
    "123-abc",
)
_SUBDOMAIN_RULE = pattern_text(
    f"a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', {_ENDS}",
    _SUBDOMAIN,
    "example.com",
)
_WILDCARD_RULE = pattern_text(
    "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of "
    "lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character",
    _WILDCARD,
    "*.example.com",
)
_UNDERSCORED_RULE = pattern_text(
    f"a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or '.', {_ENDS}",
    _UNDERSCORED,
    "example.com",
)
_DNS_1035_RULE = pattern_text(
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, "
    "and end with an alphanumeric character",
    _DNS_1035,
    "my-name",
    "abc-123",
)
_CONFIG_KEY_RULE = pattern_text(
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.'",
    _CONFIG_KEY,
    "key.name",
    "KEY_NAME",
    "key-name",
)
_HEADER_RULE = pattern_text(
    "a valid HTTP header must consist of alphanumeric characters or '-'", _HEADER, "X-Header-Name"
)
_PERCENT_RULE = pattern_text(
    "a valid percent string must be a numeric string followed by an ending '%'", _PERCENT, "1%", "93%"
)
_ENV_NAME_RULE = "a valid environment variable name must consist only of printable ASCII characters other than '='"
_DOTS = "must not contain dots"


def too_long_text(limit: int) -> str:
    return f"must be no more than {limit} characters"


def between_text(low: int, high: int) -> str:
    return f"must be between {low} and {high}, inclusive"


def _remembered(rule: NameRule) -> NameRule:
    """Cache the result, because names repeat. Text that is too long for a name is not cached."""
    kept = lru_cache(maxsize=_CACHE_SIZE)(rule)

    @wraps(rule)
    def check(text: str) -> tuple[str, ...]:
        return kept(text) if len(text) <= MAX_SUBDOMAIN else rule(text)

    return check


def _length(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def _checked(text: str, limit: int, matches: Callable[[str], object], rule: str) -> tuple[str, ...]:
    if _length(text) > limit:
        return (too_long_text(limit),) if matches(text) else (too_long_text(limit), rule)
    return () if matches(text) else (rule,)


@_remembered
def subdomain(text: str) -> tuple[str, ...]:
    """Names of most objects."""
    return _checked(text, MAX_SUBDOMAIN, _is_subdomain, _SUBDOMAIN_RULE)


@_remembered
def wildcard_subdomain(text: str) -> tuple[str, ...]:
    return _checked(text, MAX_SUBDOMAIN, _is_wildcard, _WILDCARD_RULE)


@_remembered
def dns_label(text: str) -> tuple[str, ...]:
    """Names of namespaces, containers and volumes."""
    rule = _DOTS if _is_subdomain(text) else _LABEL_RULE
    return _checked(text, MAX_LABEL, _is_label, rule)


@_remembered
def dns_1035_label(text: str) -> tuple[str, ...]:
    """Names of Services: no digit first."""
    return _checked(text, MAX_LABEL, _is_dns_1035, _DNS_1035_RULE)


@_remembered
def underscored_subdomain(text: str) -> tuple[str, ...]:
    return _checked(text, MAX_SUBDOMAIN, _is_underscored, _UNDERSCORED_RULE)


def path_segment(text: str) -> tuple[str, ...]:
    """Names of roles and bindings: any segment of a URL path."""
    if text in (".", ".."):
        return (f"may not be '{text}'",)
    found = [f"may not contain '{part}'" for part in ("/", "%") if part in text]
    return tuple(found)


@_remembered
def config_key(text: str) -> tuple[str, ...]:
    """Keys of ConfigMaps and Secrets: names of files."""
    found = _checked(text, MAX_SUBDOMAIN, _is_config_key, _CONFIG_KEY_RULE)
    if text in (".", ".."):
        return (*found, f"must not be '{text}'")
    return (*found, "must not start with '..'") if text.startswith("..") else found


def header_name(text: str) -> tuple[str, ...]:
    return () if _is_header(text) else (_HEADER_RULE,)


def percent(text: str) -> tuple[str, ...]:
    return () if _is_percent(text) else (_PERCENT_RULE,)


@_remembered
def env_name(text: str) -> tuple[str, ...]:
    if not text:
        return ("environment variable name must be non-empty",)
    return () if _is_env_name(text) else (_ENV_NAME_RULE,)


@_remembered
def port_name(text: str) -> tuple[str, ...]:
    found = []
    if _length(text) > MAX_PORT_NAME:
        found.append(too_long_text(MAX_PORT_NAME))
    if not _is_port_charset(text):
        found.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if not _has_letter(text):
        found.append("must contain at least one letter (a-z)")
    if "--" in text:
        found.append("must not contain consecutive hyphens")
    if text.startswith("-") or text.endswith("-"):
        found.append("must not begin or end with a hyphen")
    return tuple(found)


def port_number(number: int) -> tuple[str, ...]:
    return () if 1 <= number <= MAX_PORT else (between_text(1, MAX_PORT),)


def user_or_group(number: int) -> tuple[str, ...]:
    return () if 0 <= number <= MAX_ID else (between_text(0, MAX_ID),)


def prefix_problems(rule: NameRule, prefix: str) -> tuple[str, ...]:
    """The problems of a metadata.generateName, which may end in a dash."""
    if len(prefix) > 1 and prefix.endswith("-") and rule is not path_segment:
        return rule(prefix[:-2] + "a")
    return rule(prefix)
