"""`situate scheduler --shadow`: binds nothing, and compares another scheduler's choices with ours.

A pod of one of our profiles is compared when it is seen bound, on the cluster just before its own bind. The other
scheduler decided some milliseconds earlier, on what it knew then. The watch shows its binds in the order in which they
were carried out, which is nearly the order of its decisions: it carries out several at once. So a choice that differs
from ours is compared again as if neighbouring binds, up to WINDOW before and after, had come in another order. If it is
ours then, the order explains it.

The shadow steps an engine that does not lead, and carries out none of its effects.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from time import monotonic
from typing import Final, Literal, TypeAlias

import msgspec

from situate.core.changes import Change, PodGone, PodSeen
from situate.core.engine.compare import Compared, Comparer
from situate.core.model.pod import Pod
from situate.core.queue.queued_pod import QueuedPod
from situate.core.state.pods import BoundPod
from situate.loop.drive import Drive, EngineError
from situate.loop.logs import Log
from situate.loop.metrics import Metrics

WINDOW: Final = 16
"""How many binds before and after may have been decided in another order."""
WINDOW_S: Final = 2.0
"""How long to wait for binds that may have been decided earlier."""
DIFFERENCES: Final = 100
"""How many of the last differences to keep."""

Result: TypeAlias = Literal["same", "equal", "explained_by_order", "worse", "infeasible", "unknown"]
RESULTS: Final[dict[Result, str]] = {
    "same": "same node",
    "equal": "another node of the same score",
    "explained_by_order": "explained by the order of binds",
    "worse": "a node of a lower score",
    "infeasible": "a node where it does not fit",
    "unknown": "not comparable",
}
"""Each with its words in the report."""

_log = Log(__name__)


class ShadowDifference(msgspec.Struct, frozen=True, rename="camel"):
    """A choice that differs from ours, and that the order of binds does not explain."""

    pod: str
    uid: str
    scheduler: str
    result: Result
    theirs: str
    ours: str
    their_score: int | None
    our_score: int | None
    reason: str
    other_changes: int
    """How many other changes came within the last WINDOW binds. The other scheduler may not have known of all."""

    @property
    def text(self) -> str:
        ours = f"we would have chosen {self.ours}" if self.ours else "we would have chosen none"
        if self.their_score is not None and self.our_score is not None:
            return f"{self.pod} went to {self.theirs} ({self.their_score}), {ours} ({self.our_score})"
        return f"{self.pod} went to {self.theirs}, {ours}: {self.reason}"


@dataclass(eq=False, slots=True)
class ShadowReport:
    """The comparison so far. It outlives sessions."""

    counts: dict[Result, int] = field(default_factory=lambda: dict.fromkeys(RESULTS, 0))
    gap_total: int = 0
    gap_most: int = 0
    differences: deque[ShadowDifference] = field(default_factory=lambda: deque(maxlen=DIFFERENCES))

    @property
    def compared(self) -> int:
        return sum(self.counts.values())

    @property
    def agreed(self) -> int:
        return self.counts["same"] + self.counts["equal"]

    def text(self) -> str:
        if not self.compared:
            return "No pod was bound while the shadow watched.\n"
        width = max(len(words) for words in RESULTS.values())
        lines = [f"{self.compared} pods were bound while the shadow watched. Of their nodes, we would have chosen:"]
        for result, words in RESULTS.items():
            count = self.counts[result]
            line = f"  {words:<{width}}  {count:>8}  {100 * count / self.compared:>6.2f} %"
            if result == "worse" and count:
                line += f"  by {self.gap_total / count:.1f} on average, {self.gap_most} at most"
            lines.append(line)
        if self.differences:
            lines.append(f"The last differences ({len(self.differences)}):")
            lines.extend(f"  {difference.text}" for difference in self.differences)
        return "\n".join(lines) + "\n"

    def json(self) -> bytes:
        return msgspec.json.encode(
            {
                "compared": self.compared,
                "agreed": self.agreed,
                "results": self.counts,
                "worseBy": {"total": self.gap_total, "most": self.gap_most},
                "differences": list(self.differences),
            }
        )


@dataclass(eq=False, slots=True)
class _Doubt:
    """A choice that differs from ours, unless the order of binds explains it."""

    entry: QueuedPod
    compared: Compared
    since_s: float
    other_changes: int
    earlier: tuple[str, ...]
    """The pods that were bound just before it."""
    later: list[str] = field(default_factory=list)
    """The pods that were bound after it."""


class Shadow:
    """Stands between the informers and a drive that does not lead, and passes the changes on."""

    def __init__(
        self,
        drive: Drive,
        report: ShadowReport,
        metrics: Metrics | None = None,
        *,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._drive = drive
        self._report = report
        self._metrics = metrics
        self._clock = clock
        self._comparer = Comparer(drive.engine.cycle)
        self._waiting: dict[str, str] = {}
        """The pods that were seen pending: their uids by their names."""
        self._bound: deque[str] = deque(maxlen=WINDOW)
        """The pods that were bound last."""
        self._others = 0
        """How many other changes there have been."""
        self._others_then: deque[int] = deque(maxlen=WINDOW)
        """How many there had been at each of the last binds."""
        self._doubts: deque[_Doubt] = deque()

    def tell(self, changes: Sequence[Change]) -> None:
        """Pass on changes in order. The engine knows everything up to a bind when that bind is compared."""
        told: list[Change] = []
        for change in changes:
            pod = self._bound_now(change)
            if pod is not None:
                self._drive.tell(told)
                self._drive.step()
                self._compare_bind(pod)
                told = []
            told.append(change)
        self._drive.tell(told)
        self._settle_old()

    def finish(self) -> None:
        """No more changes will come: settle the open doubts."""
        if self._doubts:
            with suppress(EngineError):  # the drive has reported it
                self._drive.step()
                self._retry_doubts()
        while self._doubts:
            self._settle(self._doubts.popleft())

    def _bound_now(self, change: Change) -> Pod | None:
        """The pod, if the change binds one that was seen pending."""
        match change:
            case PodSeen(pod) if pod.spec.node_name:
                key = f"{pod.metadata.namespace}/{pod.metadata.name}"
                if self._waiting.pop(key, None) == pod.metadata.uid:
                    return pod
            case PodSeen(pod):
                if pod.spec.scheduler_name in self._drive.engine.profiles:
                    self._waiting[f"{pod.metadata.namespace}/{pod.metadata.name}"] = pod.metadata.uid
                return None
            case PodGone(ref):
                self._waiting.pop(ref.key, None)
            case _:
                pass
        self._others += 1
        return None

    # -- comparing -----------------------------------------------------------------------------------------------

    def _compare_bind(self, pod: Pod) -> None:
        key = f"{pod.metadata.namespace}/{pod.metadata.name}"
        entry = self._drive.engine.queue.get(key)
        self._retry_doubts()
        if entry is not None:
            self._compare(entry, pod.spec.node_name)
        for doubt in self._doubts:
            if doubt.entry is not entry:
                doubt.later.append(key)
        self._bound.append(key)
        self._others_then.append(self._others)
        while self._doubts and len(self._doubts[0].later) > WINDOW:
            self._settle(self._doubts.popleft())

    def _compare(self, entry: QueuedPod, theirs: str) -> None:
        compared = self._comparer.compare(entry, theirs)
        if compared.agrees:
            self._count(compared.agreement, compared)
        elif compared.agreement == "unknown":
            self._settle(_Doubt(entry, compared, 0.0, 0, ()))
        elif any(self._comparer.compare(entry, theirs, one).agrees for one in self._decided_earlier()):
            self._count("explained_by_order", compared)
        else:
            others = self._others - (self._others_then[0] if self._others_then else 0)
            self._doubts.append(_Doubt(entry, compared, self._clock(), others, tuple(self._bound)))

    def _decided_earlier(self) -> Iterator[Sequence[BoundPod]]:
        """The pods to leave out, if the pod was decided before some that were bound before it."""
        last = self._pods(self._bound)
        for end in range(len(last), 0, -1):
            for start in range(end - 1, -1, -1):
                yield last[start:end]

    def _retry_doubts(self) -> None:
        """See whether a doubtful choice is ours if pods that were bound after it were decided before it."""
        left: deque[_Doubt] = deque()
        for doubt in self._doubts:
            theirs = doubt.compared.theirs
            if any(self._comparer.compare(doubt.entry, theirs, one).agrees for one in self._decided_later(doubt)):
                self._count("explained_by_order", doubt.compared)
            else:
                left.append(doubt)
        self._doubts = left

    def _decided_later(self, doubt: _Doubt) -> Iterator[Sequence[BoundPod]]:
        """The pods to leave out, if it was decided after all that were bound after it, or after the last of them alone;
        and perhaps before some that were bound before it, too."""
        own = self._pod(doubt.entry.key)
        later = self._pods(doubt.later)
        if own is None or not later:
            return
        earlier = self._pods(doubt.earlier)
        for start in range(len(earlier), -1, -1):
            yield [*earlier[start:], own]
            if len(later) > 1:
                yield [*earlier[start:], own, *later[:-1]]

    def _pods(self, keys: Iterable[str]) -> list[BoundPod]:
        """Those that still exist."""
        return [pod for key in keys if (pod := self._pod(key)) is not None]

    def _pod(self, key: str) -> BoundPod | None:
        pods = self._drive.engine.cluster.pods
        row = pods.rows.get(key)
        return None if row is None else pods.bound(row)

    # -- settling ------------------------------------------------------------------------------------------------

    def _settle_old(self) -> None:
        while self._doubts and self._clock() - self._doubts[0].since_s > WINDOW_S:
            self._settle(self._doubts.popleft())

    def _settle(self, doubt: _Doubt) -> None:
        self._count(doubt.compared.agreement, doubt.compared)
        self._keep(doubt.entry, doubt.compared, doubt.other_changes)

    def _count(self, result: Result, compared: Compared) -> None:
        self._report.counts[result] += 1
        gap = compared.gap
        if result == "worse" and gap is not None:
            self._report.gap_total += gap
            self._report.gap_most = max(self._report.gap_most, gap)
        if self._metrics is not None:
            self._metrics.shadowed(result, None if result == "explained_by_order" else gap)

    def _keep(self, entry: QueuedPod, compared: Compared, other_changes: int) -> None:
        difference = ShadowDifference(
            pod=entry.key,
            uid=entry.ref.uid,
            scheduler=entry.pod.spec.scheduler_name,
            result=compared.agreement,
            theirs=compared.theirs,
            ours=compared.ours,
            their_score=compared.their_score,
            our_score=compared.our_score,
            reason=compared.reason,
            other_changes=other_changes,
        )
        self._report.differences.append(difference)
        _log.info("A choice differs from ours", pod=entry.key, what=difference.text)
