"""Server-side apply, and the managed fields of every other write.

`updated` is for all that create, replace or patch; `applied` for apply. Both give the object with its new
managedFields. Neither fills in defaults, validates, or restores what a client cannot write (uid, creationTimestamp and
the like): that is the caller's part. No clock: the writer says when.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import groupby, islice
from operator import itemgetter
from typing import Any, Final

import msgspec

from situate.wire.patching.errors import TOO_LARGE, ApplyConflictError, Conflict, PatchError
from situate.wire.patching.fields import (
    EMPTY,
    Fields,
    difference,
    field_step,
    from_paths,
    intersection,
    path_text,
    paths,
    touches,
    union,
    without,
)
from situate.wire.patching.managers import (
    APPLY,
    UPDATE,
    AnyOwnedFields,
    OwnedFields,
    OwnerId,
    Owners,
    StoredOwnedFields,
    capped,
    decoded,
    encoded,
    is_reset,
    stored,
)
from situate.wire.patching.owned import (
    FieldChanges,
    collapsed,
    compared,
    fields_of,
    merged,
    removed,
    size,
    with_named,
    without_hollows,
)
from situate.wire.patching.schema import MergeSchema, blank, is_served, merge_schema, resets

Json = dict[str, Any]

LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
BEFORE_FIRST_APPLY: Final = "before-first-apply"
KUBECTL: Final = "kubectl"
MAX_FIELDS: Final = 10_000
"""Values in a configuration, at all depths: each costs ten microseconds, and its size again in the store."""
MAX_DEFINITION_FIELDS: Final = 32_768
"""The same in a CustomResourceDefinition, whose schemas have several values for each field of a kind: as many as in any
body. Administrators write them, and rarely."""
DEFINITION: Final = ("apiextensions.k8s.io/v1", "CustomResourceDefinition")
TOO_MANY_FIELDS: Final = "The allowed maximum fields in an applied configuration is {limit}, got {count}"
MAX_NAMED: Final = 1_000
"""Conflicts that an error names."""
MAX_ANNOTATIONS: Final = 256 * 1024  # bytes, names and values of all together

# System fields, which nobody owns.
_SYSTEM: Final = from_paths(
    tuple(field_step(name) for name in path.split("."))
    for path in (
        *("apiVersion", "kind", "metadata", "metadata.name", "metadata.namespace", "metadata.creationTimestamp"),
        *("metadata.selfLink", "metadata.uid", "metadata.clusterName", "metadata.generation"),
        *("metadata.managedFields", "metadata.resourceVersion"),
    )
)


@dataclass(frozen=True, slots=True)
class CustomMerge:
    """The merge rules of a custom kind, in place of those of the table."""

    schema: MergeSchema
    has_status: bool
    """Whether the status is a subresource."""
    served: tuple[str, ...]
    """The API versions in which the kind is served."""
    digest: str
    """Of the schema: what follows from it is not cached beyond it."""

    def resets(self, subresource: str) -> tuple[tuple[str, ...], ...]:
        """Paths that a request cannot write, and so cannot own."""
        if subresource == "status":
            return (("metadata",), ("spec",))
        return (("status",),) if self.has_status and not subresource else ()


@dataclass(frozen=True, slots=True)
class FieldWriter:
    """Who writes, to what, and when."""

    manager: str
    api_version: str
    kind: str
    now: str
    """RFC 3339, in UTC, to the second: "2026-01-02T03:04:05Z"."""
    subresource: str = ""
    custom: CustomMerge | None = None
    """The rules of a custom kind."""

    def owner(self, operation: str) -> OwnerId:
        version = "" if operation == APPLY else self.api_version
        return OwnerId(self.manager or "unknown", operation, version, self.subresource)

    @property
    def schema(self) -> MergeSchema:
        return merge_schema(self.api_version, self.kind) if self.custom is None else self.custom.schema

    @property
    def unwritable(self) -> Fields:
        kept = resets(self.kind, self.subresource) if self.custom is None else self.custom.resets(self.subresource)
        return from_paths(tuple(map(field_step, path)) for path in kept)

    @property
    def blank(self) -> Json:
        """An object that nobody has written to."""
        if self.custom is None:
            return blank(self.api_version, self.kind)
        return {"apiVersion": self.api_version, "kind": self.kind, "metadata": {}}

    def is_served(self, api_version: str) -> bool:
        if self.custom is not None:
            return api_version in self.custom.served
        return is_served(api_version, self.kind)


def updated(live: Json | None, new: Json, writer: FieldWriter) -> Json:
    """The new object with the managedFields of the writer's changes. `live` is None for a create."""
    owners = _asked_for(live, new, writer)
    if live is not None and not owners:
        return _with_owners(new, {})  # nobody has ever been tracked, or all were asked to be forgotten
    before = _bare(live) if live is not None else writer.blank
    try:
        return _with_owners(new, _after_update(before, _bare(new), owners, writer))
    except PatchError:
        # A list with keys has an item that is not an object, say. Validation says so; until then, nobody owns more.
        bare = _bare(new)
        if entries := _entries(live):
            bare["metadata"]["managedFields"] = entries
        return bare


def _asked_for(live: Json | None, new: Json, writer: FieldWriter) -> Owners:
    """The owners before the write. A client may write managedFields, but not through a subresource."""
    entries, before = new.get("metadata", {}).get("managedFields"), _entries(live)
    if not writer.subresource and entries != before:
        if is_reset(entries):
            return {}
        if asked := _decoded_or_none(entries):
            return asked
    return stored(before)


def _decoded_or_none(entries: Any) -> dict[OwnerId, OwnedFields]:
    try:
        return decoded(entries or [])
    except PatchError:
        return {}


def _after_update(live: Json, new: Json, owners: Owners, writer: FieldWriter) -> dict[OwnerId, AnyOwnedFields]:
    rest, comparison, _ = _settled(live, new, owners, writer, None)
    mine = difference(without(union(comparison.modified, comparison.added), writer.unwritable), _SYSTEM)
    if mine:
        owner = writer.owner(UPDATE)
        before = rest[owner].fields if owner in rest else EMPTY
        rest[owner] = OwnedFields(union(mine, before), writer.api_version, writer.now)
    return capped(rest)


def applied(live: Json | None, config: Json, writer: FieldWriter, *, force: bool = False) -> Json:
    """Apply the configuration to the live object. Without force, ApplyConflictError if others own what changes."""
    _check(config, writer)
    result, lost = _apply(live, config, stored(_entries(live)), writer)
    if lost and not force:
        if writer.manager == KUBECTL and live is not None:
            allowed = _unchanged_since_last_applied(live, writer)
            lost = {owner: rest for owner, fields in lost.items() if (rest := difference(fields, allowed))}
        if lost:
            raise _conflict_error(lost)
    return _with_last_applied(result, config) if writer.manager == KUBECTL else result


def _check(config: Json, writer: FieldWriter) -> None:
    named = (config.get("apiVersion"), config.get("kind"))
    if named != (writer.api_version, writer.kind):
        raise PatchError(f"invalid object type: {named[0]}, Kind={named[1]}")
    if not isinstance(metadata := config.get("metadata", {}), dict):
        raise PatchError("metadata must be an object")
    if metadata.get("managedFields") is not None:
        raise PatchError("metadata.managedFields must be nil")
    limit = MAX_DEFINITION_FIELDS if named == DEFINITION else MAX_FIELDS
    if (count := size(config)) > limit:
        raise PatchError(TOO_MANY_FIELDS.format(limit=limit, count=count), TOO_LARGE)


def _apply(live: Json | None, config: Json, owners: Owners, writer: FieldWriter) -> tuple[Json, dict[OwnerId, Fields]]:
    """The object, and the fields that other owners lose."""
    shape, me = writer.schema, writer.owner(APPLY)
    before = _bare(live) if live is not None else {"metadata": {}}
    if live is not None and not owners:
        earlier = replace(writer, manager=BEFORE_FIRST_APPLY)
        owners = _after_update(writer.blank, before, {}, earlier)
    last = owners.get(me)

    # 1. Merge. 2. The applier owns exactly what it applied. 3. Remove what it owned before and no longer applies.
    # 4. Find out which owners lose fields.
    new = merged(before, config, shape)
    mine = without(fields_of(config, shape), writer.unwritable)
    owners = {**owners, me: OwnedFields(mine, writer.api_version, last.time if last else None)}
    if last is not None and difference(owned_before := collapsed(last.fields, shape), mine):
        new = _pruned(new, owners, owned_before, shape)
    owners, _, lost = _settled(before, new, owners, writer, me)

    new = without_hollows(new, shape)
    changed = new != before
    if me in owners:
        fields = difference(owners[me].fields, _SYSTEM)
        time = writer.now if changed else owners[me].time
        owners[me] = OwnedFields(fields, writer.api_version, time)
        if not fields:
            del owners[me]
    return _with_owners(new if changed else before, owners), lost


def _pruned(new: Json, owners: Owners, last: Fields, shape: MergeSchema) -> Json:
    """Without the fields that the applier owned and left out, unless another manager owns them."""
    kept: Fields = EMPTY
    for share in owners.values():
        kept = union(kept, collapsed(share.fields, shape))
    all_fields = with_named(fields_of(new, shape))
    rest = removed(new, with_named(last), shape)
    rest_fields = with_named(fields_of(rest, shape)) if rest else EMPTY
    rest = removed(new, difference(all_fields, union(rest_fields, with_named(kept))), shape)
    rest_fields = with_named(fields_of(rest, shape)) if rest else EMPTY
    gone = intersection(difference(all_fields, rest_fields), with_named(last))
    return removed(new, gone, shape) or {}


def _settled(
    live: Json, new: Json, owners: Owners, writer: FieldWriter, me: OwnerId | None
) -> tuple[dict[OwnerId, AnyOwnedFields], FieldChanges, dict[OwnerId, Fields]]:
    """The owners after a change, the change, and the changed fields that others owned. Only the writer owns what it
    changed, and nobody owns what is gone."""
    comparison = compared(live, new, writer.schema)
    if blocked := writer.unwritable:
        comparison = FieldChanges(*(without(fields, blocked) for fields in comparison))
    changed = union(comparison.modified, comparison.added)
    touched = union(changed, comparison.removed)
    lost: dict[OwnerId, Fields] = {}
    rest: dict[OwnerId, AnyOwnedFields] = {}
    for owner, share in owners.items():
        if owner == me:
            rest[owner] = share
        elif share.api_version != writer.api_version and not writer.is_served(share.api_version):
            continue  # of a version that is not served any more
        elif isinstance(share, StoredOwnedFields) and not touches(share.entry["fieldsV1"], touched):
            rest[owner] = share
        else:
            fields = collapsed(share.fields, writer.schema)
            if taken := intersection(fields, changed):
                lost[owner] = taken
            if fields := difference(fields, touched):
                rest[owner] = OwnedFields(fields, share.api_version, share.time)
    return rest, comparison, lost


def _unchanged_since_last_applied(live: Json, writer: FieldWriter) -> Fields:
    """The fields of client-side apply that nobody has changed since: kubectl may take them over without force."""
    try:
        config = msgspec.json.decode(live["metadata"]["annotations"][LAST_APPLIED])
    except (KeyError, TypeError, msgspec.DecodeError, RecursionError):
        return EMPTY
    if not isinstance(config, dict) or config.get("apiVersion") != writer.api_version:
        return EMPTY
    try:
        found = fields_of(config, writer.schema)
        comparison = compared(config, _bare(live), writer.schema)
    except PatchError:
        return EMPTY
    for changed in comparison:
        found = difference(found, changed)
    return found


def _with_last_applied(result: Json, config: Json) -> Json:
    """Update the annotation of client-side apply, if there is one, so that a client can return to it."""
    metadata = result["metadata"]
    annotations = metadata.get("annotations") or {}
    if not annotations.get(LAST_APPLIED):
        return result
    if (own := config.get("metadata", {}).get("annotations")) and LAST_APPLIED in own:
        rest = {name: text for name, text in own.items() if name != LAST_APPLIED}
        config = {**config, "metadata": {**config["metadata"], "annotations": rest}}
    text = msgspec.json.encode(config, order="sorted").decode() + "\n"
    annotations = {**annotations, LAST_APPLIED: text}
    if sum(len(name.encode()) + len(str(value).encode()) for name, value in annotations.items()) > MAX_ANNOTATIONS:
        del annotations[LAST_APPLIED]
    return {**result, "metadata": {**metadata, "annotations": annotations}}


def _conflict_error(lost: Mapping[OwnerId, Fields]) -> ApplyConflictError:
    ordered = sorted(lost, key=lambda owner: owner.sort_key)
    number = sum(1 for owner in ordered for _ in paths(lost[owner]))
    named = list(islice(((owner, path_text(path)) for owner in ordered for path in paths(lost[owner])), MAX_NAMED))
    conflicts = tuple(Conflict(str(owner), field) for owner, field in named)
    if len(conflicts) == 1:
        only = conflicts[0]
        text = f"Apply failed with 1 conflict: conflict with {only.manager}: {only.field}"
        return ApplyConflictError(text, conflicts)
    lines = []
    for owner, some in groupby(named, key=itemgetter(0)):
        lines.append(f"conflicts with {owner}:")
        lines += [f"- {field}" for _, field in some]
    if number > len(conflicts):
        lines.append(f"and {number - len(conflicts)} more")
    return ApplyConflictError(f"Apply failed with {number} conflicts: " + "\n".join(lines), conflicts)


def _entries(live: Json | None) -> Any:
    return ((live or {}).get("metadata") or {}).get("managedFields") or []


def _bare(item: Json) -> Json:
    """The object without its managedFields."""
    metadata = {name: value for name, value in (item.get("metadata") or {}).items() if name != "managedFields"}
    return {**item, "metadata": metadata}


def _with_owners(item: Json, owners: Owners) -> Json:
    bare = _bare(item)
    if owners:
        bare["metadata"]["managedFields"] = encoded(owners)
    return bare
