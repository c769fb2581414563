"""VolumeAttachment: a volume that is, or should be, attached to a node."""

from collections.abc import Mapping
from typing import Any, Final

from situate.server.kinds.core.pod.volumes import csi_driver
from situate.server.kinds.field_errors import Causes
from situate.server.kinds.kind import Kind
from situate.server.kinds.names import subdomain
from situate.server.kinds.storage.storageclass import size_of
from situate.server.kinds.strategy import Strategy, keep_status
from situate.server.objects import Object

MAX_PARAMETERS_SIZE: Final = 256 * 1024


MAX_ERROR: Final = 1024


def _prepare_attachment(obj: Object) -> None:
    obj["status"] = {"attached": False}


def _validate_attachment(obj: Object, causes: Causes) -> None:
    spec = obj.get("spec", {})
    source, at = spec.get("source", {}), "spec.source"
    csi_driver(spec.get("attacher", ""), "spec.attacher", causes)
    inline, volume = source.get("inlineVolumeSpec"), source.get("persistentVolumeName")
    text = "must specify exactly one of inlineVolumeSpec and persistentVolumeName"
    if inline is None and volume is None:
        causes.required(at, text)
    elif inline is not None and volume is not None:
        causes.forbidden(at, text)
    elif volume == "":
        causes.required(f"{at}.persistentVolumeName", "must specify non empty persistentVolumeName")
    causes.check(subdomain, spec.get("nodeName", ""), "spec.nodeName")
    status = obj.get("status", {})
    if size_of(status.get("attachmentMetadata", {})) > MAX_PARAMETERS_SIZE:
        causes.too_long("status.attachmentMetadata", MAX_PARAMETERS_SIZE)
    for name in ("attachError", "detachError"):
        _attachment_error(status.get(name, {}), f"status.{name}", causes)
    if volume is not None:
        causes.check(subdomain, volume, "spec.source.persistentVolumeName")


def _attachment_error(error: Mapping[str, Any], path: str, causes: Causes) -> None:
    if len(error.get("message", "").encode("utf-8", "surrogatepass")) > MAX_ERROR:
        causes.too_long(f"{path}.message", MAX_PARAMETERS_SIZE)
    if error.get("errorCode", 0) < 0:
        causes.invalid(f"{path}.errorCode", error["errorCode"], f"must be between 0 and {2**31 - 1}, inclusive")


def _validate_attachment_update(new: Object, old: Object, causes: Causes) -> None:
    _validate_attachment(new, causes)
    spec, was = new.get("spec", {}), old.get("spec", {})
    if spec != was:
        source = spec.get("source", {})
        inside = {
            "PersistentVolumeName": source.get("persistentVolumeName"),
            "InlineVolumeSpec": source.get("inlineVolumeSpec"),
        }
        shown = {"Attacher": spec.get("attacher", ""), "Source": inside, "NodeName": spec.get("nodeName", "")}
        causes.immutable(shown, None, "spec")


KIND: Final = Kind(
    "storage.k8s.io/v1 volumeattachments VolumeAttachment C - - | status",
    strategy=Strategy(
        prepare_create=_prepare_attachment,
        prepare_update=keep_status,
        validate=_validate_attachment,
        validate_update=_validate_attachment_update,
        validate_status=_validate_attachment_update,
        unconditional_update=False,
    ),
    columns="""
        Name!, Attacher! = spec.attacher, PV = spec.source.persistentVolumeName, Node = spec.nodeName,
        Attached? = status.attached, Age
        """,
    description="VolumeAttachment says that a volume is, or should be, attached to a node.",
)
