"""Which texts are Kubernetes names: label keys and values, domain names, extended resources. A fault is a sentence."""

import re
from typing import Final

__all__ = ["is_extended_resource", "label_key_faults", "label_value_faults"]

_KEY: Final = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_VALUE: Final = f"({_KEY})?"
_DOMAIN: Final = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
_KEY_PATTERN: Final = re.compile(_KEY)
_VALUE_PATTERN: Final = re.compile(_VALUE)
_DOMAIN_PATTERN: Final = re.compile(_DOMAIN)

LABEL_BYTES: Final = 63
DOMAIN_BYTES: Final = 253

# The doubled blanks are Kubernetes' own.
_KEY_RULE: Final = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character"
    f" (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '{_KEY}')"
)
_VALUE_RULE: Final = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and"
    " end with an alphanumeric character"
    f" (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '{_VALUE}')"
)
_DOMAIN_RULE: Final = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and"
    f" end with an alphanumeric character (e.g. 'example.com', regex used for validation is '{_DOMAIN}')"
)
_PREFIX_RULE: Final = " with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
_EMPTY: Final = "must be non-empty"


def label_key_faults(key: str) -> list[str]:
    """What keeps `key` from being a label key (a "qualified name")."""
    parts = key.split("/")
    if len(parts) > 2:
        return [f"a valid label key {_KEY_RULE}{_PREFIX_RULE}"]
    faults = [f"prefix part {fault}" for fault in _prefix_faults(parts[0])] if len(parts) == 2 else []
    name = parts[-1]
    if not name:
        faults.append(f"name part {_EMPTY}")
    elif _bytes(name) > LABEL_BYTES:
        faults.append(f"name part {_too_long(LABEL_BYTES)}")
    if not _KEY_PATTERN.fullmatch(name):
        faults.append(f"name part {_KEY_RULE}")
    return faults


def _prefix_faults(prefix: str) -> list[str]:
    if not prefix:
        return [_EMPTY]
    faults = []
    if _bytes(prefix) > DOMAIN_BYTES:
        faults.append(_too_long(DOMAIN_BYTES))
    if not _DOMAIN_PATTERN.fullmatch(prefix):
        faults.append(_DOMAIN_RULE)
    return faults


def label_value_faults(value: str) -> list[str]:
    """What keeps `value` from being a label's value."""
    faults = []
    if _bytes(value) > LABEL_BYTES:
        faults.append(_too_long(LABEL_BYTES))
    if not _VALUE_PATTERN.fullmatch(value):
        faults.append(_VALUE_RULE)
    return faults


def is_extended_resource(name: str) -> bool:
    """A resource that is not Kubernetes' own, and whose quota (`requests.` and the name) can be written down."""
    if "/" not in name or "kubernetes.io/" in name or name.startswith("requests."):
        return False
    return not label_key_faults(f"requests.{name}")


def _bytes(text: str) -> int:
    return len(text.encode(errors="surrogatepass"))


def _too_long(limit: int) -> str:
    return f"must be no more than {limit} bytes"
