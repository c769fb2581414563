"""Strategy: the steps of a write that differ from kind to kind. The registry does the rest.

The registry calls `default` and `stamp` after it decodes an object, then `prepare_create`, `prepare_update` or
`prepare_status`, then `validate`, `validate_update` or `validate_status`. The first five change the object in place.
Validations only read it, and append to the errors. They leave `metadata` to metadata.py.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, NamedTuple, TypeAlias

from situate.server.kinds.field_errors import Causes
from situate.server.kinds.names import NameRule, subdomain
from situate.server.objects import Object

Change: TypeAlias = Callable[[Object], None]
Merge: TypeAlias = Callable[[Object, Object], None]
Check: TypeAlias = Callable[[Object, Causes], None]
Stamp: TypeAlias = Callable[[Object, Object | None, str], None]
Compare: TypeAlias = Callable[[Object, Object, Causes], None]

NOTHING: Final[Mapping[str, str]] = MappingProxyType({})


def _leave(_: Object) -> None:
    """Nothing to change."""


def _leave_both(_new: Object, _old: Object) -> None:
    """Nothing to carry over."""


def _unstamped(_new: Object, _old: Object | None, _now: str) -> None:
    """It has no times of its own."""


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
    """On creation: ignore the client's status."""
    obj.pop("status", None)


def keep_status(new: Object, old: Object) -> None:
    """On update: only the status subresource changes the status."""
    if "status" in old:
        new["status"] = old["status"]
    else:
        new.pop("status", None)


def keep_all_but_status(new: Object, old: Object) -> None:
    """On update of the status: keep everything else. The registry handles metadata."""
    for key in [key for key in new if key not in ("metadata", "status") and key not in old]:
        del new[key]
    for key, value in old.items():
        if key not in ("metadata", "status"):
            new[key] = value


class SubresourceStrategy(NamedTuple):
    """The rules of a subresource that changes a part of the spec. The registry handles metadata as for a status."""

    prepare: Merge
    validate: Compare


@dataclass(frozen=True, slots=True)
class Strategy:
    """The rules of a kind. Every step is optional."""

    default: Change = _leave
    """Set defaults. Must be idempotent."""
    stamp: Stamp = _unstamped
    """(new, old, now): set times that the client did not give. `old` is None on creation; now is RFC 3339."""
    prepare_create: Change = _leave
    prepare_update: Merge = _leave_both
    """(new, old): copy from `old` what this request cannot change."""
    prepare_status: Merge = keep_all_but_status
    prepare_approval: Merge = keep_status
    """The same for the `approval` subresource, which `validate_update` checks."""
    validate: Check = _fine
    validate_update: Compare = _fine_both
    """(new, old): includes the checks of `validate` that kube-apiserver repeats."""
    validate_status: Compare = _fine_both
    subresources: Mapping[str, SubresourceStrategy] = field(default_factory=dict)
    """Others, by name."""
    validate_finalize: Check = _fine
    """Of the `finalize` subresource."""
    selectable: Callable[[Object], Mapping[str, str]] = _not_selectable
    """Values for field selectors besides metadata.name and metadata.namespace. Always returns all keys of the kind."""
    grace: Callable[[Object, int | None], int] = _at_once
    """(object, requested): the grace period in seconds. 0 deletes at once."""
    warnings: Callable[[Object], list[str]] = _silent
    update_warnings: Callable[[Object, Object], list[str]] | None = None
    """(new, old): in place of `warnings`, if what the object had before matters."""
    own_finalizers: bool = True
    """Whether a finalizer without a domain must be one of Kubernetes' own."""
    name_rule: NameRule = subdomain
    """The rule for names, which metadata.py applies."""
    is_nameless: Callable[[Object], bool] | None = None
    """Whether nothing here depends on the name of a new object, if that is a DNS label. Then the registry creates
    objects that differ only in their names from one template. None: the name matters."""
    counts_generation: bool = False
    """metadata.generation is 1 on creation and counts changes of anything but metadata and status."""
    creates_on_update: bool = False
    """PUT creates an object that does not exist."""
    unconditional_update: bool = True
    """PUT without a resourceVersion is accepted, not Invalid."""
