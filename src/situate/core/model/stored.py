"""What all objects have in common for controllers: full metadata, conditions, templates.

The scheduler reads less and has its own structs (`meta`, `pod`).
"""

from collections.abc import Mapping
from typing import Any, TypeAlias

from situate.core.model.base import EMPTY, Int64, Labels, Model

Raw: TypeAlias = Mapping[str, Any]
"""A part of an object that is passed on unchanged, with Kubernetes' field names."""


class Owner(Model, frozen=True, kw_only=True):
    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool = False
    block_owner_deletion: bool = False


class StoredMeta(Model, frozen=True, kw_only=True):
    name: str = ""
    generate_name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: Int64 = 0
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    labels: Labels = EMPTY
    annotations: Labels = EMPTY
    owner_references: tuple[Owner, ...] = ()
    finalizers: tuple[str, ...] = ()


class Condition(Model, frozen=True, kw_only=True):
    """A condition of any kind of object; each kind uses some of the times."""

    type: str = ""
    status: str = ""
    last_probe_time: str | None = None
    last_update_time: str | None = None
    last_heartbeat_time: str | None = None
    last_transition_time: str | None = None
    reason: str = ""
    message: str = ""
    observed_generation: Int64 = 0


class TemplateMeta(Model, frozen=True, kw_only=True):
    labels: Labels = EMPTY
    annotations: Labels = EMPTY
    finalizers: tuple[str, ...] = ()


class PodTemplateSpec(Model, frozen=True, kw_only=True):
    """The template of new pods. The spec is passed on unchanged."""

    metadata: TemplateMeta = TemplateMeta()
    spec: Raw = EMPTY


def condition_of(conditions: tuple[Condition, ...], kind: str) -> Condition | None:
    for one in conditions:
        if one.type == kind:
            return one
    return None


def controller_of(meta: StoredMeta) -> Owner | None:
    """The owner reference with `controller: true`, if any."""
    for owner in meta.owner_references:
        if owner.controller:
            return owner
    return None
