"""Object metadata: name, namespace, labels, owners, times. Times stay text here; `timestamp` reads them."""

from situate.core.model.base import EMPTY, Labels, Model

__all__ = ["ObjectMeta", "OwnerReference", "controller_of", "key_of"]


class OwnerReference(Model, frozen=True, kw_only=True):
    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool = False


class ObjectMeta(Model, frozen=True, kw_only=True):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    labels: Labels = EMPTY
    annotations: Labels = EMPTY
    owner_references: tuple[OwnerReference, ...] = ()
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None


def key_of(meta: ObjectMeta) -> str:
    """`namespace/name`, or the bare name of what has no namespace."""
    return f"{meta.namespace}/{meta.name}" if meta.namespace else meta.name


def controller_of(meta: ObjectMeta) -> OwnerReference | None:
    """The owner that manages the object, if it has one."""
    for owner in meta.owner_references:
        if owner.controller:
            return owner
    return None
