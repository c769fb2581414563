"""Object metadata: name, namespace, labels, owners, times. Times stay text here; `timestamp` reads them."""

from situate.core.model.base import EMPTY, Labels, Model


class OwnerReference(Model, frozen=True, kw_only=True):
    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool = False


class ObjectMeta(Model, frozen=True, kw_only=True):
    """Equal are two that say the same of an object, whatever version of it they are from: `resource_version` and
    `generation` move with what nobody here reads, and whoever asks "did it change?" means something else."""

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

    def __ne__(self, other: object) -> bool:  # msgspec's own would look at all fields
        return self._said() != other._said() if isinstance(other, ObjectMeta) else NotImplemented

    __hash__ = None  # type: ignore[assignment]


def key_of(meta: ObjectMeta) -> str:
    """`namespace/name`, or the bare name of what has no namespace."""
    return f"{meta.namespace}/{meta.name}" if meta.namespace else meta.name


def controller_of(meta: ObjectMeta) -> OwnerReference | None:
    """The owner that manages the object, if it has one."""
    for owner in meta.owner_references:
        if owner.controller:
            return owner
    return None
