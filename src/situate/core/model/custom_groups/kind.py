"""What situate knows about a custom PodGroup kind, as data."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final

import msgspec

from situate.core.model.base import EMPTY, Int32, Model
from situate.core.model.meta import ObjectMeta


class MinMemberSpec(Model, frozen=True, kw_only=True):
    """The fields of a spec that says how many pods to place together, and nothing else that situate acts on."""

    min_member: Int32 | None = None


def min_member(spec: Any) -> int:
    return max(0, spec.min_member or 0)


class CustomPodGroup(Model, frozen=True, kw_only=True):
    """A PodGroup of another scheduler. Its `spec` is kept whole, so that fields without effect can be named."""

    SPEC: ClassVar[type[Model]] = MinMemberSpec
    """The fields of the spec that situate acts on."""

    metadata: ObjectMeta = ObjectMeta()
    spec: Mapping[str, Any] = EMPTY

    def __post_init__(self) -> None:
        """Raises ValueError, which a decoder reports as its own, if a field that situate acts on has a wrong type."""
        try:
            self.acted_on  # noqa: B018 - for what it raises
        except msgspec.ValidationError as error:
            raise ValueError(str(error).replace("`$", "`$.spec", 1)) from None

    @property
    def acted_on(self) -> Any:
        """The fields of the spec that situate acts on."""
        return msgspec.convert(self.spec, self.SPEC)


NO_RESOURCE_CHECK: Final = "the requests of the pods decide, not a sum that the group names"
NO_QUEUES: Final = "situate has no queues: neither their shares nor their limits apply"
OWN_PRIORITIES: Final = "each pod has its own priority"
COUNTED_TOGETHER: Final = "the pods of the group are counted together"
UNKNOWN: Final = "situate does not know this field"


@dataclass(frozen=True, slots=True, kw_only=True)
class CustomGroupKind:
    """One custom PodGroup kind: its names, and what its fields mean for a gang."""

    model: type[CustomPodGroup]
    owner: str
    """Whose kind it is, in words."""
    group: str
    """Its API group."""
    versions: tuple[str, ...]
    """The API versions that are read, best first."""
    pod_labels: tuple[str, ...] = ()
    """Labels in which a pod names its group; the first that is set counts."""
    pod_annotations: tuple[str, ...] = ()
    """Annotations that do the same."""
    acts_on: frozenset[str] = frozenset({"minMember"})
    """Fields of the spec that decide about the gang, such as `topologyConstraint.requiredTopologyLevel`."""
    ignores: Mapping[str, str]
    """The other fields that are known, and what holds instead."""
    min_count: Callable[[Any], int] = min_member
    """From the fields that are acted on, the minimum number of pods to place together."""
    topology_key: Callable[[Any], str] = lambda _: ""
    """The node label whose value all pods must share; empty if there is none."""


@dataclass(frozen=True, slots=True)
class IgnoredField:
    """A field that is set in a group, and that situate does not act on."""

    path: str
    instead: str
    """What holds instead."""

    def __str__(self) -> str:
        return f"{self.path} ({self.instead})"
