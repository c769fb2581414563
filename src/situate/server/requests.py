"""The parts of an API request: the caller, the target, the options."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from msgspec import Struct

from situate.server.objects import Object
from situate.server.resources import Resource

__all__ = [
    "APISERVER",
    "SYSTEM",
    "Caller",
    "DeleteOptions",
    "FieldValidation",
    "ListOptions",
    "Object",
    "Target",
    "WatchOptions",
    "WriteOptions",
]

FieldValidation: TypeAlias = Literal["Strict", "Warn", "Ignore"]


@dataclass(frozen=True, slots=True)
class Caller:
    """An authenticated user."""

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    agent: str = ""
    """The User-Agent. Up to its first slash, it is the default name of the field manager."""


SYSTEM = Caller("system:situate", ("system:masters", "system:authenticated"), agent="situate")
"""The control plane's own parts."""
APISERVER = Caller("system:apiserver", ("system:masters", "system:authenticated"), agent="kube-apiserver")
"""What keeps definitions of custom kinds."""


# Every request creates one or two of these, and a struct takes a tenth of the time of a frozen dataclass.
class Target(Struct, frozen=True):
    """An object, or without a name all objects of a resource; in a namespace, or without one in all."""

    resource: Resource
    namespace: str = ""
    name: str = ""
    subresource: str = ""


class WriteOptions(Struct, frozen=True):
    dry_run: bool = False
    field_manager: str = ""
    field_validation: FieldValidation = "Warn"
    force: bool = False


@dataclass(frozen=True, slots=True)
class DeleteOptions:
    dry_run: bool = False
    grace_s: int | None = None
    uid: str = ""
    resource_version: str = ""
    propagation: Literal["", "Background", "Foreground", "Orphan"] = ""


@dataclass(frozen=True, slots=True)
class ListOptions:
    labels: str = ""
    fields: str = ""
    limit: int = 0
    continue_from: str = ""
    resource_version: str = ""
    resource_version_match: str = ""


@dataclass(frozen=True, slots=True)
class WatchOptions:
    labels: str = ""
    fields: str = ""
    resource_version: str = ""
    resource_version_match: str = ""
    initial_events: bool | None = None
    bookmarks: bool = False
    timeout_s: int = 0
