"""Cells that several kinds print: labels, selectors, containers, shortened lists."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from situate.core.model.integers import parse_count
from situate.server.objects import Object

NONE: Final = "<none>"
UNSET: Final = "<unset>"
SHOWN: Final = 3
"""The number of ports or addresses that a cell lists before it counts the rest."""

_OPERATORS: Final = {"In": "in", "NotIn": "notin"}


def labels(these: Mapping[str, str] | None) -> str:
    """`a=b,c=d`, sorted by key."""
    if not these:
        return NONE
    return ",".join([f"{key}={these[key]}" for key in sorted(these)])


def selector(this: Mapping[str, Any] | None, nothing: str = NONE) -> str:
    """A label selector in the notation of kubectl's --selector."""
    if not this:
        return nothing
    found = [(key, f"{key}={value}") for key, value in (this.get("matchLabels") or {}).items()]
    for one in this.get("matchExpressions") or ():
        found.append((one.get("key", ""), _requirement(one)))
    return ",".join([text for _, text in sorted(found, key=lambda pair: pair[0])]) or nothing


def _requirement(one: Mapping[str, Any]) -> str:
    key, operator = one.get("key", ""), one.get("operator", "")
    if operator == "Exists":
        return str(key)
    if operator == "DoesNotExist":
        return f"!{key}"
    return f"{key} {_OPERATORS.get(operator, operator)} ({','.join(sorted(one.get('values') or ()))})"


def _template_containers(template: Mapping[str, Any] | None) -> Sequence[Mapping[str, Any]]:
    return ((template or {}).get("spec") or {}).get("containers") or ()


def containers(template: Mapping[str, Any] | None) -> str:
    return ",".join([one.get("name", "") for one in _template_containers(template)])


def images(template: Mapping[str, Any] | None) -> str:
    return ",".join([one.get("image", "") for one in _template_containers(template)])


def shortened(these: Sequence[str], nothing: str) -> str:
    """The first three, and the number of the others."""
    text = ",".join(these[:SHOWN])
    if len(these) > SHOWN:
        return f"{text} + {len(these) - SHOWN} more..."
    return text or nothing


def condition(these: Iterable[Object] | None, kind: str) -> Object | None:
    """The first condition of a type."""
    for one in these or ():
        if one.get("type") == kind:
            return one
    return None


def size(amount: str | None) -> str:
    """Bytes in the largest unit that loses nothing: `512Mi`."""
    number = parse_count(amount or "") or 0
    for unit, factor in (("Ti", 1 << 40), ("Gi", 1 << 30), ("Mi", 1 << 20), ("Ki", 1 << 10)):
        if number >= factor and number % factor == 0:
            return f"{number // factor}{unit}"
    return amount or "0"


def ready_of_desired(obj: Object) -> str:
    return f"{(obj.get('status') or {}).get('readyReplicas', 0)}/{(obj.get('spec') or {}).get('replicas', 0)}"
