"""The SchedulingPort, through which a performer reads and writes, and the values of its calls.

`situate.kube.port` writes to an API server, `situate.server.scheduling.port` to a registry in its own process. A port
writes and returns the outcome. Order, limits, retries of events and the rules for volumes are the performer's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any, ClassVar, Final, NamedTuple, Protocol, TypeAlias
from uuid import uuid4

from situate.core.changes import BindDone, BindFailed, EvictDone, EvictFailed, PodRef
from situate.core.effects import Bind, Evict, ExtendedResource, Nominate, Report, SetCondition, SetGroupCondition
from situate.core.model.devices import AllocationResult, DeviceRequest, ResourceClaim
from situate.core.model.pod import Pod
from situate.core.model.storage import PersistentVolume, PersistentVolumeClaim

NOT_LEADER: Final = "no longer the leader"
STOPPING: Final = "the scheduler is shutting down"
RUNNING: Final = 'running Bind plugin "DefaultBinder": '
NAME_CHARS: Final = 253
"""How long the name of an event may be."""
INSTANCE_CHARS: Final = 128
"""The API server refuses an event whose reportingInstance is longer."""


class WriteOutcome(Enum):
    """The outcome of writing a note or an event."""

    DONE = auto()
    """It is written, or there was nothing to write (any more)."""
    EXISTS = auto()
    """An event of this name is there already: an earlier answer was lost."""
    MISSING = auto()
    """The event whose count was to be written is gone."""
    BUSY = auto()
    """The server answered, and could not do it now."""
    UNREACHABLE = auto()
    REFUSED = auto()
    """Trying again would not help."""


@dataclass(slots=True, eq=False)
class PodNote:
    """What to write in the status of a pending pod. A later note of the same thing replaces an earlier one."""

    kind: ClassVar[str] = "note"
    ref: PodRef
    conditions: dict[str, SetCondition] = field(default_factory=dict)
    nominated: str | None = None
    """The nominated node, "" for none; None leaves it as it is."""
    details: Any = None
    """What `SchedulingPort.details` gave for the last condition."""

    def add(self, effect: SetCondition | Nominate) -> None:
        if isinstance(effect, Nominate):
            self.nominated = effect.node
        else:
            self.conditions[effect.type] = effect


@dataclass(slots=True, eq=False)
class EventSeries:
    """An event, and how often it occurred."""

    report: Report
    controller: str
    instance: str
    version: str
    """Of the pod, as the engine knew it; "" if it did not."""
    name: str
    at_ns: int
    last_ns: int
    count: int = 1
    written: int = 0
    """The last count that was written; 0: the event has not been created yet."""
    refreshed_ns: int = 0


class EventNames:
    """Names for events: unique, and short enough for the API server."""

    def __init__(self, host: str) -> None:
        self._host = host
        self._last_ns = 0

    def next(self, pod: PodRef, now_ns: int) -> str:
        self._last_ns = max(now_ns, self._last_ns + 1)
        name = f"{pod.name}.{self._last_ns:x}"
        return name if len(name) <= NAME_CHARS else str(uuid4())

    def instance(self, controller: str) -> str:
        """The reportingInstance of a controller on this host."""
        return f"{controller}-{self._host}"[:INSTANCE_CHARS]


class VolumeError(Exception):
    """Why the volumes cannot be made ready. One line."""


class ReserveVolume(NamedTuple):
    """Set a volume's claimRef, in the version of the volume that was read."""

    volume: PersistentVolume
    claim: PersistentVolumeClaim


class BindClaim(NamedTuple):
    """Bind a claim to the volume that is reserved for it, where no volume controller does it."""

    claim: PersistentVolumeClaim
    volume: str


class ReleaseVolume(NamedTuple):
    """Remove a volume's claimRef, in the version of the volume that was read."""

    volume: PersistentVolume


class SelectNode(NamedTuple):
    """Have a claim's volume provisioned for a node, in the version of the claim that was read."""

    claim: PersistentVolumeClaim
    node: str


VolumeWrite: TypeAlias = ReserveVolume | BindClaim | ReleaseVolume | SelectNode


class VolumeOutcome(NamedTuple):
    """The outcome of a VolumeWrite."""

    problem: str = ""
    """Empty: it is written."""
    retry: bool = False
    """Whether reading the object and writing it again may help."""


# -- claims for devices ------------------------------------------------------------------------------------------------


ASSIGNED: Final = 'pod {} is already assigned to node "{}"'


class ClaimError(Exception):
    """Why the devices of a pod cannot be written. One line."""


class ProtectClaim(NamedTuple):
    """Add the finalizer of allocated claims, in the version of the claim that was read."""

    claim: ResourceClaim


class AllocateClaim(NamedTuple):
    """Give devices to a claim and reserve it for a pod, in the version of the claim that was read."""

    claim: ResourceClaim
    allocation: AllocationResult
    pod: PodRef


class ReserveClaim(NamedTuple):
    """Reserve an allocated claim for one pod more, in the version of the claim that was read."""

    claim: ResourceClaim
    pod: PodRef


class UnreserveClaim(NamedTuple):
    """Remove a pod from those that a claim is reserved for, in the version of the claim that was read."""

    claim: ResourceClaim
    pod: PodRef


class DeallocateClaim(NamedTuple):
    """Take back the devices of a claim, in the version of the claim that was read."""

    claim: ResourceClaim


class CreateClaim(NamedTuple):
    """Create the claim for a pod's extended resources."""

    pod: PodRef
    name: str
    requests: tuple[DeviceRequest, ...]


class DeleteClaim(NamedTuple):
    """Delete a claim that was created for extended resources, in the version that was read, and its finalizer."""

    claim: ResourceClaim


class ExtendedStatus(NamedTuple):
    """Write in a pod's status which claim serves its extended resources, if the pod is still pending."""

    pod: PodRef
    claim: str
    mappings: tuple[ExtendedResource, ...]


ClaimWrite: TypeAlias = (
    ProtectClaim
    | AllocateClaim
    | ReserveClaim
    | UnreserveClaim
    | DeallocateClaim
    | CreateClaim
    | DeleteClaim
    | ExtendedStatus
)


class ClaimOutcome(NamedTuple):
    """The outcome of a ClaimWrite."""

    problem: str = ""
    """Empty: it is written."""
    retry: bool = False
    """Whether reading the object and writing it again may help."""
    lost: bool = False
    """It is unknown whether it was written: only reading tells."""
    claim: ResourceClaim | None = None
    """The claim as it was written."""


class InFlightLimits(NamedTuple):
    """How many pieces of each kind of work run at a time."""

    binds: int
    notes: int
    evictions: int
    volumes: int
    claims: int
    events: int
    binds_together: int = 1
    """How many binds are written together, at most."""


class SchedulingPort(Protocol):
    """Where a performer writes. Only the reads raise; every other call returns its failure."""

    @property
    def limits(self) -> InFlightLimits: ...

    @property
    def names(self) -> EventNames: ...

    @property
    def nominates_reserved(self) -> bool:
        """Whether a pod shows its node as nominated while its volumes are being made ready."""

    async def bind(self, bind: Bind, pod: Pod | None) -> BindDone | BindFailed:
        """Bind a pod, as it was when the engine decided."""

    async def bind_each(self, binds: Sequence[tuple[Bind, Pod | None]]) -> Sequence[BindDone | BindFailed]:
        """`bind` for several pods, at most `limits.binds_together`, and an answer for each."""

    async def note(self, note: PodNote, superseded: Callable[[], bool]) -> WriteOutcome:
        """Write what differs from the pod's status, if the pod is still pending; not once the note is superseded."""

    async def note_group(self, condition: SetGroupCondition) -> WriteOutcome: ...

    async def evict(self, evict: Evict) -> EvictDone | EvictFailed:
        """Say in the victim's conditions why, then delete it, and no other pod of its name."""

    async def read_volume(self, name: str) -> PersistentVolume | None:
        """None: there is none. Raises VolumeError if it cannot be read."""

    async def read_claim(self, namespace: str, name: str) -> PersistentVolumeClaim | None:
        """None: there is none. Raises VolumeError if it cannot be read."""

    async def write_volume(self, write: VolumeWrite) -> VolumeOutcome: ...

    async def read_resource_claim(self, namespace: str, name: str) -> ResourceClaim | None:
        """None: there is none. Raises ClaimError if it cannot be read."""

    async def write_resource_claim(self, write: ClaimWrite) -> ClaimOutcome: ...

    async def read_pod(self, ref: PodRef) -> Pod | None:
        """The pod with this uid as it is now. None: it is gone. Raises ClaimError if it cannot be read."""

    async def write_event(self, event: EventSeries) -> WriteOutcome:
        """Create the event; or write its count, if it was written before."""

    def wrote_event(self, report: Report) -> bool:
        """Whether the port has written this event already, in the transaction of a bind."""

    def details(self, condition: SetCondition) -> Any:
        """What else to write with a condition, as of now. It comes back in the PodNote."""
