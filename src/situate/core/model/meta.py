"""Object metadata: name, namespace, labels, owners, times. Times stay text here; `timestamp` reads them."""

from situate.core.model.base import EMPTY, Labels, Model


class OwnerReference(Model, frozen=True, kw_only=True):
    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool = False


class ObjectMeta(Model, frozen=True, kw_only=True):
    """Equality ignores `resource_version` and `generation`: they change with fields that scheduling does not read."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    labels: Labels = EMPTY
    annotations: Labels = EMPTY
    owner_references: tuple[OwnerReference, ...] = ()
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    resource_version: str = ""
    generation: int = 0

    def _said(self) -> tuple[object, ...]:
        return (
            self.name,
            self.namespace,
            self.uid,
            self.labels,
            self.annotations,
            self.owner_references,
            self.creation_timestamp,
            self.deletion_timestamp,
        )

    def __eq__(self, other: object) -> bool:
        return self._said() == other._said() if isinstance(other, ObjectMeta) else NotImplemented

    def __ne__(self, other: object) -> bool:  # msgspec's own would compare all fields
        return self._said() != other._said() if isinstance(other, ObjectMeta) else NotImplemented

    __hash__ = None  # type: ignore[assignment]


def key_of(meta: ObjectMeta) -> str:
    """`namespace/name`, or the bare name without a namespace."""
    return f"{meta.namespace}/{meta.name}" if meta.namespace else meta.name


def is_older(version: str, other: str) -> bool:
    """Whether a resourceVersion comes before another; False unless both are numbers."""
    if version.isascii() and version.isdigit() and other.isascii() and other.isdigit():
        return int(version) < int(other)
    return False


def controller_of(meta: ObjectMeta) -> OwnerReference | None:
    """The owner reference with `controller: true`, if any."""
    for owner in meta.owner_references:
        if owner.controller:
            return owner
    return None
