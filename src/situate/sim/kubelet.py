"""Simulated kubelets: a pod's life cycle is data, a list of stages. Also the garbage collector for pods whose node is
gone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from types import MappingProxyType
from typing import Final, Literal

from msgspec.structs import replace

from situate.core.changes import Millis, PodRef
from situate.core.model.pod import Pod
from situate.core.state.pods import timestamp_text
from situate.sim.faults import Faults
from situate.sim.store import ObjectStore, StoreEvent, ref_of
from situate.sim.timeline import Timeline

LIFECYCLE: Final = "sim.situate.dev/life"
"""The annotation with the name of the pod's life cycle."""

COLLECT_EVERY_MS: Final = 7_000
PROMPT_MS: Final = (0, 1_500)
LINGERING_MS: Final = (5_000, 30_000)


@dataclass(frozen=True, slots=True)
class Stage:
    """The next phase of a pod, and the delay before it."""

    then: Literal["Running", "Succeeded", "Failed", "deleted"]
    after_ms: tuple[Millis, Millis]


LIFECYCLES: Final[Mapping[str, tuple[Stage, ...]]] = MappingProxyType(
    {
        "service": (Stage("Running", (10, 2_000)),),
        "job": (Stage("Running", (10, 2_000)), Stage("Succeeded", (1_000, 60_000)), Stage("deleted", (0, 20_000))),
        "brief": (Stage("Running", (1, 50)), Stage("Succeeded", (1, 500)), Stage("deleted", (1, 200))),
        "crash": (Stage("Failed", (10, 5_000)),),
        "batch": (Stage("Running", (10, 3_000)), Stage("deleted", (5_000, 90_000))),
    }
)


class Kubelets:
    """The kubelets of all nodes. Those of dead nodes do nothing."""

    def __init__(self, timeline: Timeline, rng: Random, store: ObjectStore) -> None:
        self.faults = Faults()
        self.quiet = False
        """Stop changing pods, but still remove deleted ones."""
        self.dead: dict[str, None] = {}
        self._timeline = timeline
        self._rng = rng
        self._store = store
        self._met: dict[str, str] = {}
        """Known pods by uid: "bound" or "leaving"."""
        timeline.after(COLLECT_EVERY_MS, self._collect)

    def hear(self, written: StoreEvent) -> None:
        if not isinstance(pod := written.item, Pod):
            return
        ref = ref_of(pod)
        met = self._met.get(ref.uid)
        if written.gone:
            self._met.pop(ref.uid, None)
        elif pod.metadata.deletion_timestamp is not None and met != "leaving":
            self._met[ref.uid] = "leaving"
            lingers = self._rng.random() < self.faults.lingers
            self._timeline.after(self._rng.randint(*(LINGERING_MS if lingers else PROMPT_MS)), self._let_go, ref)
        elif pod.spec.node_name and met is None:
            self._met[ref.uid] = "bound"
            self._next_stage(ref, LIFECYCLES[pod.metadata.annotations.get(LIFECYCLE, "service")])

    def _next_stage(self, ref: PodRef, stages: tuple[Stage, ...]) -> None:
        if stages:
            self._timeline.after(self._rng.randint(*stages[0].after_ms), self._reach, ref, stages)

    def _reach(self, ref: PodRef, stages: tuple[Stage, ...]) -> None:
        pod = self._store.find(ref)
        if pod is None or pod.metadata.deletion_timestamp is not None or self.quiet:
            return
        if pod.spec.node_name in self.dead or pod.spec.node_name not in self._store.nodes:
            return
        then = stages[0].then
        if then == "deleted":
            self._store.mark_leaving(ref, self._timeline.now)
            return
        started = pod.status.start_time or timestamp_text(self._timeline.now // 1_000 * 1_000)
        self._store.put_pod(replace(pod, status=replace(pod.status, phase=then, start_time=started)))
        self._next_stage(ref, stages[1:])

    def _let_go(self, ref: PodRef) -> None:
        pod = self._store.find(ref)
        if pod is None:
            return
        if pod.spec.node_name in self.dead:
            self._timeline.after(COLLECT_EVERY_MS, self._let_go, ref)  # until the node is deleted, or back
            return
        self._store.drop_pod(ref)

    def _collect(self) -> None:
        for pod in list(self._store.pods.values()):
            if pod.spec.node_name and pod.spec.node_name not in self._store.nodes:
                self._store.drop_pod(ref_of(pod))
        self._timeline.after(COLLECT_EVERY_MS, self._collect)
