"""Accept and Content-Type: the encoding of the response and of the request body."""

from __future__ import annotations

from dataclasses import dataclass
from http import HTTPStatus
from typing import Final, Literal, TypeAlias

from situate.server.errors import StatusError
from situate.wire import snapshot_increments as increments
from situate.wire.caching import cached_if_short

JSON: Final = "application/json"
YAML: Final = "application/yaml"
PROTOBUF: Final = "application/vnd.kubernetes.protobuf"
SERVED: Final = f"{JSON}, {YAML}, {PROTOBUF}"
"""What bodies may be; answers are JSON or YAML."""
META: Final = "meta.k8s.io"
DISCOVERY: Final = "apidiscovery.k8s.io"
DISCOVERY_VERSIONS: Final = ("v2", "v2beta1")
_ANY: Final = ("*/*", "application/*", JSON, YAML)
_PATCHES: Final = {
    "application/merge-patch+json": "merge",
    "application/json-patch+json": "json",
    "application/strategic-merge-patch+json": "strategic",
    "application/apply-patch+yaml": "apply",
    "application/apply-patch": "apply",
}
_CUSTOM_PATCHES: Final = ("application/json-patch+json", "application/merge-patch+json", "application/apply-patch+yaml")

Shape: TypeAlias = Literal["", "Table", "PartialObjectMetadata", "PartialObjectMetadataList", "NodeSnapshotIncrement"]


@dataclass(frozen=True, slots=True)
class Form:
    """The form of a response. The shape is empty for plain objects."""

    shape: Shape = ""
    version: str = "v1"


PLAIN: Final = Form()


def not_acceptable(message: str = f"only the following media types are accepted: {JSON}, {YAML}") -> StatusError:
    return StatusError(HTTPStatus.NOT_ACCEPTABLE, "NotAcceptable", message)


def _clauses(header: str) -> list[tuple[str, dict[str, str]]]:
    """Media types with their parameters, the most wanted first."""
    found = []
    for clause in header.split(","):
        media, *parameters = (part.strip() for part in clause.split(";"))
        named = dict(part.split("=", 1) for part in parameters if "=" in part)
        try:
            weight = float(named.get("q", "1"))
        except ValueError:
            weight = 0.0
        if media:
            found.append((weight, media.lower(), named))
    found.sort(key=lambda one: -one[0])
    return [(media, named) for _, media, named in found]


@cached_if_short(entries=256, length=512)
def parse_accept(header: str) -> Form:
    """The first requested form that the server supports. Raises StatusError (406)."""
    if not header:
        return PLAIN
    for media, named in _clauses(header):
        if media not in _ANY:
            continue
        shape, version = named.get("as", ""), named.get("v", "")
        if not shape:
            return PLAIN
        if named.get("g") == META and version in ("v1", "v1beta1"):
            if shape == "Table":
                return Form("Table", version)
            if shape == "PartialObjectMetadata":
                return Form("PartialObjectMetadata", version)
            if shape == "PartialObjectMetadataList":
                return Form("PartialObjectMetadataList", version)
        if (shape, named.get("g"), version) == (increments.KIND, increments.GROUP, increments.VERSION):
            return Form("NodeSnapshotIncrement", version)
    raise not_acceptable()


@cached_if_short(entries=256, length=512)
def wants_discovery(header: str) -> str:
    """The version of APIGroupDiscoveryList if it is preferred to plain JSON, else "". Raises StatusError (406)."""
    if not header:
        return ""
    for media, named in _clauses(header):
        if media not in _ANY:
            continue
        if named.get("as") == "APIGroupDiscoveryList":
            if named.get("g") == DISCOVERY and named.get("v") in DISCOVERY_VERSIONS:
                return named["v"]
        elif not named.get("as"):
            return ""
    raise not_acceptable()


@cached_if_short(entries=64, length=512)
def wants_yaml(header: str) -> bool:
    """Whether a client prefers YAML to JSON."""
    return next((media == YAML for media, _ in _clauses(header) if media in _ANY), False)


@cached_if_short(entries=64, length=512)
def refuse_yaml(header: str) -> None:
    """Of a stream: raises StatusError (406) if a client prefers YAML."""
    if wants_yaml(header):
        raise not_acceptable(f"only the following media types are accepted: {JSON}")


@cached_if_short(entries=64, length=512)
def refuse_table(header: str) -> None:
    """Of what has no table: raises StatusError (406) if a client accepts nothing else."""
    shapes = [named.get("as", "") for media, named in _clauses(header) if media in _ANY]
    if shapes and all(shape == "Table" for shape in shapes):
        raise not_acceptable()


def _media(header: str) -> str:
    return header.partition(";")[0].strip().lower()


@cached_if_short(entries=64, length=512)
def body_type(header: str, *, custom: bool = False) -> Literal["json", "yaml", "protobuf"]:
    """Raises StatusError (415). No header means JSON. `custom`: of a custom kind, which has no protobuf."""
    media = _media(header)
    if media == JSON or not header.strip():
        return "json"
    if media == YAML:
        return "yaml"
    if media == PROTOBUF and not custom:
        return "protobuf"
    served = f"{JSON}, {YAML}" if custom else SERVED
    text = f"the body of the request was in an unknown format - accepted media types include: {served}"
    raise StatusError(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "UnsupportedMediaType", text)


@cached_if_short(entries=64, length=512)
def patch_type(header: str, *, custom: bool = False) -> str:
    """merge, json, strategic or apply. Raises StatusError (415). `custom`: of a custom kind, which has no strategic
    merge."""
    found = _PATCHES.get(_media(header), "")
    if not found or (custom and found == "strategic"):
        known = ", ".join(_CUSTOM_PATCHES if custom else list(_PATCHES)[:4])
        text = f"the body of the request was in an unknown format - accepted media types include: {known}"
        raise StatusError(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "UnsupportedMediaType", text)
    return found
