"""Sets the metadata that the server controls, for objects of any kind, in place. `kinds/metadata.py` validates it."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import Final

from situate.server.errors import bad_request, conflict
from situate.server.registry.stored_object import StoredObject
from situate.server.requests import Object, Target
from situate.server.resources import Resource
from situate.wire.patching.schema import resets

NAME_ALPHABET: Final = "bcdfghjklmnpqrstvwxz2456789"
"""Kubernetes' alphabet for generated names: no vowels, so no words."""
SUFFIX_LENGTH: Final = 5
MAX_BASE_LENGTH: Final = 63 - SUFFIX_LENGTH

_UINT64_DIGITS: Final = 20
VERSION_ON_CREATE: Final = "resourceVersion should not be set on objects to be created"
OTHER_NAMESPACE: Final = "the namespace of the provided object does not match the namespace sent on the request"
OTHER_NAME: Final = "the name of the object ({body}) does not match the name on the URL ({url})"
NO_NAME: Final = "the name of the object ({url} based on URL) was undeterminable: name must be provided"
OTHER_UID: Final = "Precondition failed: UID in precondition: {asked}, UID in object meta: {found}"
_NOT_THE_CLIENTS: Final = ("selfLink", "deletionTimestamp", "deletionGracePeriodSeconds")
SET_BY_SERVER: Final = ("uid", "creationTimestamp", "generation")
"""What `init_metadata` sets."""


def random_suffix() -> str:
    return "".join([secrets.choice(NAME_ALPHABET) for _ in range(SUFFIX_LENGTH)])


def set_name_and_namespace(obj: Object, target: Target) -> None:
    """Take the namespace from the URL, and the name if the URL has one; 400 for an object with others."""
    metadata = obj.setdefault("metadata", {})
    if not target.resource.namespaced:
        metadata.pop("namespace", None)
    elif metadata.setdefault("namespace", target.namespace) != target.namespace:
        if metadata["namespace"]:
            raise bad_request(OTHER_NAMESPACE)
        metadata["namespace"] = target.namespace
    if target.name and metadata.get("name") != target.name:
        if not metadata.get("name"):
            raise bad_request(NO_NAME.format(url=target.name))
        raise bad_request(OTHER_NAME.format(body=metadata["name"], url=target.name))


def is_version(text: str) -> bool:
    """Whether kube-apiserver accepts the text as a resourceVersion: a number from 1 to uint64's maximum."""
    if not text or not text.isascii() or not text.isdecimal():
        return False
    digits = text.lstrip("0")
    return 0 < len(digits) <= _UINT64_DIGITS and int(digits) < 1 << 64


def init_metadata(obj: Object, *, uid: str, now: str, counted: bool) -> bool:
    """Set the uid, creation time and generation of a new object. Returns whether it had a resourceVersion."""
    metadata = obj["metadata"]
    versioned = is_version(metadata.pop("resourceVersion", ""))
    for name in _NOT_THE_CLIENTS:
        metadata.pop(name, None)
    metadata["uid"] = uid
    metadata["creationTimestamp"] = now
    if counted:
        metadata["generation"] = 1
    return versioned


def generated_name(base: str, suffix: Callable[[], str]) -> str:
    return base[:MAX_BASE_LENGTH] + suffix()


def check_preconditions(target: Target, asked_version: str, asked_uid: str, stored: StoredObject) -> None:
    """409 if the uid or the resourceVersion is not the one given."""
    group, plural = target.resource.group, target.resource.plural
    if asked_uid and asked_uid != stored.uid:
        raise conflict(plural, group, stored.name, OTHER_UID.format(asked=asked_uid, found=stored.uid))
    if asked_version and asked_version != str(stored.revision):
        raise conflict(plural, group, stored.name)


def keep_server_fields(new: Object, old: Object) -> None:
    """Keep what no update may change. Validation rejects another uid, or a deletion time that was not set before."""
    metadata, was = new["metadata"], old["metadata"]
    metadata.pop("selfLink", None)
    metadata.setdefault("uid", was.get("uid", ""))
    for name in ("creationTimestamp", "generation"):
        _restore(metadata, was, name)
    for name in ("deletionTimestamp", "deletionGracePeriodSeconds"):
        if name in was:
            metadata[name] = was[name]


def restore_metadata_for_status(new: Object, old: Object, resource: Resource) -> None:
    """Restore the metadata that a status write must not change. The new managedFields stay: they record the write."""
    kept = resets(resource.kind, "status") if resource.custom is None else resource.custom.merge.resets("status")
    for path in kept:
        match path:
            case ("metadata",):
                managed = new["metadata"].get("managedFields")
                new["metadata"] = {name: value for name, value in old["metadata"].items() if name != "managedFields"}
                if managed is not None:
                    new["metadata"]["managedFields"] = managed
            case ("metadata", name):
                _restore(new["metadata"], old["metadata"], name)
            case _:
                pass  # the kind's strategy keeps the spec


def _restore(new: Object, old: Object, name: str) -> None:
    if name in old:
        new[name] = old[name]
    else:
        new.pop(name, None)


def bump_generation(new: Object, old: Object, resource: Resource) -> None:
    """Increment the generation if the desired state has changed; a Deployment's annotations are part of it, and the
    status of a custom kind that has no such subresource."""
    ignored = _NOT_WANTED if resource.custom is None or resource.has_status else _NOT_WANTED[:-1]
    changed = any(new.get(name) != old.get(name) for name in {**new, **old} if name not in ignored)
    if resource.kind == "Deployment" and resource.custom is None:
        changed = changed or new["metadata"].get("annotations") != old["metadata"].get("annotations")
    if changed:
        new["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1


_NOT_WANTED: Final = ("apiVersion", "kind", "metadata", "status")
