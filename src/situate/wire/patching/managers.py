"""metadata.managedFields: who owns which fields of an object.

An owner is a manager with an operation (Apply, or Update for everything else), a version and a subresource; but whoever
applies is one owner, whatever version it applies.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

import msgspec

from situate.wire.patching.errors import PatchError
from situate.wire.patching.fields import Fields, from_v1, to_v1, union

APPLY: Final = "Apply"
UPDATE: Final = "Update"
MAX_UPDATERS: Final = 10
ANCIENT: Final = "ancient-changes"
FIELDS_TYPE: Final = "FieldsV1"


class OwnerId(NamedTuple):
    """The identity of an owner."""

    manager: str
    operation: str
    api_version: str
    """"" for an apply."""
    subresource: str = ""

    @property
    def sort_key(self) -> str:
        """The owner as Kubernetes encodes it for sorting."""
        named = {
            "manager": self.manager,
            "operation": self.operation,
            "apiVersion": self.api_version,
            "subresource": self.subresource,
        }
        return msgspec.json.encode({name: text for name, text in named.items() if text}).decode()

    def __str__(self) -> str:
        text = _quoted(self.manager)
        if self.subresource:
            text += f" with subresource {_quoted(self.subresource)}"
        return f"{text} using {self.api_version}" if self.operation == UPDATE else text


@dataclass(frozen=True, slots=True)
class OwnedFields:
    """The fields of an owner."""

    fields: Fields
    api_version: str
    time: str | None = None
    """When the owner last changed something; RFC 3339 in UTC."""


@dataclass(frozen=True, slots=True)
class StoredOwnedFields:
    """The fields of an owner, decoded on demand: most writes touch the fields of few owners."""

    entry: Mapping[str, Any]

    @property
    def fields(self) -> Fields:
        return from_v1(self.entry["fieldsV1"])

    @property
    def api_version(self) -> str:
        version: str = self.entry["apiVersion"]
        return version

    @property
    def time(self) -> str | None:
        return self.entry.get("time")


AnyOwnedFields = OwnedFields | StoredOwnedFields
Owners = Mapping[OwnerId, AnyOwnedFields]


def is_reset(entries: Any) -> bool:
    """Whether a client clears all owners: an empty list, or one with an empty entry."""
    return entries in ([], [{}])


def decoded(entries: Any) -> dict[OwnerId, OwnedFields]:
    """Decode managedFields. Raises PatchError."""
    if not isinstance(entries, list):
        raise PatchError("metadata.managedFields must be a list")
    return dict(_parse_entry(entry, index) for index, entry in enumerate(entries))


def stored(entries: list[dict[str, Any]]) -> dict[OwnerId, StoredOwnedFields]:
    """Decode the managedFields of a stored object, which `encoded` wrote."""
    return {_owner_of(entry): StoredOwnedFields(entry) for entry in entries}


def _owner_of(entry: Mapping[str, Any]) -> OwnerId:
    version = "" if entry["operation"] == APPLY else entry["apiVersion"]
    return OwnerId(entry.get("manager", ""), entry["operation"], version, entry.get("subresource", ""))


def _parse_entry(entry: Any, index: int) -> tuple[OwnerId, OwnedFields]:
    if not isinstance(entry, dict):
        raise PatchError(f"managed fields entry {index} must be an object")
    texts = [entry.get(name, "") for name in ("manager", "operation", "apiVersion", "subresource", "fieldsType")]
    if not all(isinstance(text, str) for text in texts):
        raise PatchError(f"managed fields entry {index} must have strings in all fields but fieldsV1")
    _, operation, version, _, fields_type = texts
    if operation not in (APPLY, UPDATE):
        raise PatchError("operation must be `Apply` or `Update`")
    if not version:
        raise PatchError("apiVersion must not be empty")
    if fields_type != FIELDS_TYPE:
        problem = f"invalid fieldsType {_quoted(fields_type)}" if fields_type else "missing fieldsType"
        raise PatchError(f"{problem} in managed fields entry {index}")
    return _owner_of(entry), OwnedFields(from_v1(entry.get("fieldsV1") or {}), version, _utc(entry.get("time")))


def encoded(owners: Owners) -> list[dict[str, Any]]:
    """As managedFields, in Kubernetes' order."""
    rows = sorted(owners.items(), key=lambda row: _order(*row))
    return [_entry(owner, share) for owner, share in rows]


def _order(owner: OwnerId, share: AnyOwnedFields) -> tuple[Any, ...]:
    return (owner.operation, share.time or "", owner.manager, share.api_version, owner.subresource)


def _entry(owner: OwnerId, share: AnyOwnedFields) -> dict[str, Any]:
    if isinstance(share, StoredOwnedFields):
        return dict(share.entry)
    entry = {
        "manager": owner.manager,
        "operation": owner.operation,
        "apiVersion": share.api_version,
        "time": share.time,
        "fieldsType": FIELDS_TYPE,
        "fieldsV1": to_v1(share.fields),
        "subresource": owner.subresource,
    }
    return {name: value for name, value in entry.items() if value or name == "fieldsV1"}


def capped(owners: Owners) -> dict[OwnerId, AnyOwnedFields]:
    """Keep at most MAX_UPDATERS updaters: merge the oldest of each version under one name."""
    kept = dict(owners)
    updaters = sorted(
        (owner for owner in kept if owner.operation == UPDATE),
        key=lambda owner: (kept[owner].time or "", owner.sort_key),
    )
    too_many = len(updaters) - MAX_UPDATERS
    first: dict[str, OwnerId] = {}
    for owner in updaters:
        if too_many <= 0:
            break
        version = kept[owner].api_version
        if version not in first:
            first[version] = owner
            continue
        bucket = OwnerId(ANCIENT, UPDATE, version)
        if bucket not in kept:
            kept[bucket] = kept.pop(first[version])
        newest = kept.pop(owner) if owner != bucket else kept[bucket]
        kept[bucket] = OwnedFields(union(newest.fields, kept[bucket].fields), version, newest.time)
        too_many -= 1
    return kept


def _utc(time: Any) -> str | None:
    """A time to the second, so that times sort as strings."""
    if time is None:
        return None
    try:
        moment = datetime.fromisoformat(time)
        moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ").rjust(20, "0")
    except (TypeError, ValueError, OverflowError) as error:
        raise PatchError(f"not a time in managed fields: {str(time)[:100]}") from error


def _quoted(text: str) -> str:
    return msgspec.json.encode(text).decode()
