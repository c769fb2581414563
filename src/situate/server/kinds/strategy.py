"""Strategy: what is particular to a kind when its objects are written. Everything else is the registry's.

The registry calls, in this order: `default` (whenever an object was decoded), `prepare_create` or `prepare_update` or
`prepare_status`, then `validate` or `validate_update` or `validate_status`. The first four change the object in place.
The validations read only, take an object that is defaulted and prepared, and say what is wrong with anything but
`metadata`, which is checked by `metadata.py` for every kind alike.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, TypeAlias

from situate.server.kinds.field_errors import Causes
from situate.server.kinds.naming import NameRule, subdomain
from situate.server.objects import Object

__all__ = ["NOTHING", "Strategy", "again", "drop_status", "keep_all_but_status", "keep_status"]

Change: TypeAlias = Callable[[Object], None]
Merge: TypeAlias = Callable[[Object, Object], None]
Check: TypeAlias = Callable[[Object, Causes], None]
Compare: TypeAlias = Callable[[Object, Object, Causes], None]

NOTHING: Final[Mapping[str, str]] = MappingProxyType({})


def _leave(_: Object) -> None:
    """Nothing to change."""


def _leave_both(_new: Object, _old: Object) -> None:
    """Nothing to carry over."""


def _fine(_: Object, _causes: Causes) -> None:
    """Nothing to check."""


def _fine_both(_new: Object, _old: Object, _causes: Causes) -> None:
    """Nothing to compare."""


def _not_selectable(_: Object) -> Mapping[str, str]:
    return NOTHING


def _at_once(_obj: Object, _asked: int | None) -> int:
    return 0


def _silent(_: Object) -> list[str]:
    return []


def again(check: Check) -> Compare:
    """On update: the same checks as on creation."""
    return lambda new, _old, causes: check(new, causes)


def drop_status(obj: Object) -> None:
    """On creation: what a client says about the state is not believed."""
    obj.pop("status", None)


def keep_status(new: Object, old: Object) -> None:
    """On update: only the status subresource changes the state."""
    if "status" in old:
        new["status"] = old["status"]
    else:
        new.pop("status", None)


def keep_all_but_status(new: Object, old: Object) -> None:
    """On update of the status: all else stays, but for metadata, which is the registry's."""
    for key in [key for key in new if key not in ("metadata", "status") and key not in old]:
        del new[key]
    for key, value in old.items():
        if key not in ("metadata", "status"):
            new[key] = value


@dataclass(frozen=True, slots=True)
class Strategy:
    """A kind's own rules; what is not given does nothing."""

    default: Change = _leave
    """Fill in what the API server writes for what was left out. Twice is the same as once."""
    prepare_create: Change = _leave
    prepare_update: Merge = _leave_both
    """(new, old): carry over from old what this request may not change and says nothing about."""
    prepare_status: Merge = keep_all_but_status
    validate: Check = _fine
    validate_update: Compare = _fine_both
    """(new, old): includes the checks of `validate` where Kubernetes makes them again."""
    validate_status: Compare = _fine_both
    validate_finalize: Check = _fine
    """Of the `finalize` subresource."""
    selectable: Callable[[Object], Mapping[str, str]] = _not_selectable
    """Values for field selectors beyond metadata.name and metadata.namespace; always all keys of the kind."""
    grace: Callable[[Object, int | None], int] = _at_once
    """(object, asked for): seconds between being asked to go and going; 0 is at once."""
    warnings: Callable[[Object], list[str]] = _silent
    name_rule: NameRule = subdomain
    """What is wrong with a name, by metadata.py."""
    is_nameless: Callable[[Object], bool] | None = None
    """Whether the name of a new object, if it is a DNS label, plays no part in anything that is done or said here: then
    others that differ only in their names are created in its likeness. None: that is not so."""
    counts_generation: bool = False
    """metadata.generation is 1 at creation and one more with each change of anything but metadata and status."""
    creates_on_update: bool = False
    """PUT of what does not exist creates it."""
    unconditional_update: bool = True
    """PUT without a resourceVersion is taken; if not, it is Invalid."""
