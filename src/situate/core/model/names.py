"""The grammar of names: DNS names, label keys and values. ASCII only, whole text, Kubernetes' wording.

Each function returns the problems; empty if the text is valid.
"""

import re
from functools import lru_cache

_NAME = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]", re.ASCII)
_LABEL_VALUE = re.compile(r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?", re.ASCII)
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*", re.ASCII)

MAX_NAME = 63
MAX_SUBDOMAIN = 253

_NAME_RULE = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character "
    "(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
_PREFIXED_NAME_RULE = (
    "a valid label key must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
    "alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix and '/' (e.g. "
    "'example.com/MyName')"
)
_LABEL_VALUE_RULE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
_SUBDOMAIN_RULE = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)

_CACHE_SIZE = 4_096


def _too_long(limit: int) -> str:
    return f"must be no more than {limit} bytes"


@lru_cache(maxsize=_CACHE_SIZE)
def subdomain_problems(text: str) -> tuple[str, ...]:
    """Names of pods, nodes and most other objects."""
    problems = []
    if len(text) > MAX_SUBDOMAIN:
        problems.append(_too_long(MAX_SUBDOMAIN))
    if not _SUBDOMAIN.fullmatch(text):
        problems.append(_SUBDOMAIN_RULE)
    return tuple(problems)


@lru_cache(maxsize=_CACHE_SIZE)
def qualified_name_problems(text: str) -> tuple[str, ...]:
    """Label, taint and extended resource keys: `[prefix/]name`."""
    prefix, slash, name = text.rpartition("/")
    if slash and "/" in prefix:
        return (_PREFIXED_NAME_RULE,)
    problems = []
    if slash and not prefix:
        problems.append("prefix part must be non-empty")
    elif slash:
        problems.extend("prefix part " + problem for problem in subdomain_problems(prefix))
    if not name:
        problems.append("name part must be non-empty")
    elif len(name) > MAX_NAME:
        problems.append("name part " + _too_long(MAX_NAME))
    if not _NAME.fullmatch(name):
        problems.append("name part " + _NAME_RULE)
    return tuple(problems)


@lru_cache(maxsize=_CACHE_SIZE)
def label_value_problems(text: str) -> tuple[str, ...]:
    problems = []
    if len(text) > MAX_NAME:
        problems.append(_too_long(MAX_NAME))
    if not _LABEL_VALUE.fullmatch(text):
        problems.append(_LABEL_VALUE_RULE)
    return tuple(problems)
