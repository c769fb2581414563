"""Which node a waiting pod gets, and why it gets none. Reads the cluster and the nominations; changes nothing."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence

from situate.core.engine.framework import Framework
from situate.core.engine.in_flight import Nominations
from situate.core.engine.nominated_by_priority import NominatedByPriority
from situate.core.place.filtering import fits_at
from situate.core.place.placer import Placer
from situate.core.place.sampling import Draw, draw_key, sample, sample_message
from situate.core.place.selecting import NOWHERE
from situate.core.place.stopwatch import NO_STOPWATCH, Stopwatch
from situate.core.place.verdict_cache import VerdictCache
from situate.core.plugins.dynamic_resources import decide as decide_devices
from situate.core.plugins.support.device_demand import NO_DEVICES, DeviceDecision
from situate.core.plugins.volume_binding import NO_VOLUMES_TO_BIND, VolumeDecision
from situate.core.plugins.volume_binding import decide as decide_volumes
from situate.core.preempt import FitFailureFinder, NominatedPods
from situate.core.preempt.fit_failure import FitFailure
from situate.core.preempt.lower_priority import LowerTables
from situate.core.queue.queued_pod import QueuedPod
from situate.core.state.classes import PodClass
from situate.core.state.cluster import Cluster
from situate.core.state.columns import Mask
from situate.core.state.view import View


class NodeSelection:
    def __init__(
        self,
        cluster: Cluster,
        frameworks: Mapping[str, Framework],
        nominations: Nominations,
        stopwatch: Stopwatch = NO_STOPWATCH,
    ) -> None:
        self.cluster = cluster
        self.nominations = nominations
        self._frameworks = frameworks
        self._placers = {name: Placer(cluster, one.profile, stopwatch=stopwatch) for name, one in frameworks.items()}
        lower = LowerTables(cluster)
        self._failures = {
            name: FitFailureFinder(cluster, one.profile, one.preemption, lower) for name, one in frameworks.items()
        }
        self._nominated = NominatedByPriority(cluster, nominations)

    def framework_of(self, entry: QueuedPod) -> Framework:
        return self._frameworks[entry.pod.spec.scheduler_name]

    def choose(self, entry: QueuedPod) -> int:
        """The row of the node that a pod gets now, or NOWHERE.

        If a bind to a node was rejected, the pod gets another node where it can: the same bind would be rejected again.
        """
        if entry.rejected and (avoided := self.cluster.nodes.rows.get(entry.rejected)) is not None:
            row = self._choose_but(entry, (avoided,))
            if row != NOWHERE:
                return row
        return self._choose_but(entry, ())

    def _choose_but(self, entry: QueuedPod, avoided: tuple[int, ...]) -> int:
        placer = self._placers[entry.pod.spec.scheduler_name]
        key = _draw_key(entry) if placer.samples else 0
        if not len(self.nominations):
            return placer.choose(entry.kind, avoided, key)
        row = self.nominated_row(entry)
        if row not in avoided and self.fits_now(entry, row):
            placer.drawn = None
            return row
        excluded = dict.fromkeys(avoided)
        if placer.samples:
            excluded |= self.held(entry)
        while True:
            row = placer.choose(entry.kind, excluded, key)
            if row == NOWHERE or self._fits_with_nominated(entry, row):
                return row
            excluded[row] = None

    def nominated_row(self, entry: QueuedPod) -> int:
        """The row of the node that is nominated for a pod; NOWHERE if none is, or the node is gone."""
        nomination = self.nominations.get(entry.key)
        return NOWHERE if nomination is None else self.cluster.nodes.rows.get(nomination.node, NOWHERE)

    def held(self, entry: QueuedPod) -> dict[int, None]:
        """The rows that are nominated for other pods and where this pod does not fit beside them."""
        rows = [self.cluster.nodes.rows.get(node, NOWHERE) for node in self.nominations.nodes]
        return {row: None for row in rows if row != NOWHERE and not self._fits_with_nominated(entry, row)}

    def fits_now(self, entry: QueuedPod, row: int) -> bool:
        """Whether a pod fits on a node, with and without the pods that the node is nominated for."""
        return row != NOWHERE and self._fits_with_nominated(entry, row) and self._fits(entry, row, ())

    def _fits_with_nominated(self, entry: QueuedPod, row: int) -> bool:
        nominated = self.nominations.weighing_on(self.cluster.nodes.names[row], entry)
        return not nominated or self._fits(entry, row, [(one.kind, row) for one in nominated])

    def _fits(self, entry: QueuedPod, row: int, nominated: Sequence[tuple[PodClass, int]]) -> bool:
        filters = self.framework_of(entry).profile.filters
        return fits_at(filters, entry.kind, View(self.cluster).plus(nominated), row)

    def feasible(self, entry: QueuedPod) -> Mask:
        """The rows that a pod fits, of those that its profile looks at."""
        placer = self._placers[entry.pod.spec.scheduler_name]
        return placer.looked_at(entry.kind, self.held(entry), _draw_key(entry) if placer.samples else 0)

    def fit_failure(self, entry: QueuedPod, evicting: Container[str]) -> FitFailure:
        """Why a pod fits nowhere now, and whom to evict for it. `evicting`: the uids of pods being evicted."""
        own = self.nominations.get(entry.key)
        return self._failures[entry.pod.spec.scheduler_name].find(
            entry.kind, self.nominated(entry), nominated_node="" if own is None else own.node, evicting=evicting
        )

    def nominated(self, entry: QueuedPod) -> NominatedPods:
        return self._nominated.seen_by(entry)

    def sample_message(self, entry: QueuedPod, failure: FitFailure) -> str:
        """The message for a pod that fits somewhere, but on none of the sampled nodes; empty for other failures."""
        drew = self.framework_of(entry).profile.sampling.nodes
        if not drew or not failure.filtered.feasible.any():
            return ""
        return sample_message(failure.diagnosis, sample(View(self.cluster), drew, _draw_key(entry)))

    def volumes_at(self, entry: QueuedPod, row: int) -> VolumeDecision | None:
        """The volumes to bind if a pod goes to a node; None if it cannot have them there."""
        if not entry.kind.holds_volumes or not self.framework_of(entry).binds_volumes:
            return NO_VOLUMES_TO_BIND
        return decide_volumes(entry.kind, View(self.cluster), row)

    def devices_at(self, entry: QueuedPod, row: int) -> DeviceDecision | None:
        """The devices of a pod if it goes to a node; None if it cannot have them there."""
        kind = entry.kind
        if not kind.spec.resource_claims and not kind.requested_names:
            return NO_DEVICES
        plugin = self.framework_of(entry).devices
        return NO_DEVICES if plugin is None else decide_devices(plugin, kind, View(self.cluster), row)

    def verdicts_for(self, entry: QueuedPod) -> VerdictCache | None:
        """The cached verdicts on a pod's class, for a witness to look at."""
        return self._placers[entry.pod.spec.scheduler_name].verdicts(entry.kind)

    def drawn_for(self, entry: QueuedPod) -> Draw | None:
        """The nodes that were considered for the last choice of this pod's profile; None if those were all."""
        return self._placers[entry.pod.spec.scheduler_name].drawn


def _draw_key(entry: QueuedPod) -> int:
    return draw_key(entry.ref.uid or entry.key, entry.attempts)
