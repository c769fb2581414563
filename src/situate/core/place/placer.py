"""Places pods of one profile, and keeps a verdict cache for each class of pods."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection
from typing import Final

import numpy as np

from situate.core.place.filtering import feasible_rows, run_filters
from situate.core.place.profile import ALL_NODES, Profile
from situate.core.place.sampling import Draw, Rounds, sample, samples
from situate.core.place.scoring import best_row, ranks
from situate.core.place.selecting import NOWHERE, first_feasible_best
from situate.core.place.stopwatch import FILTER, NO_STOPWATCH, SCORE, Stopwatch
from situate.core.place.verdict_cache import VerdictCache
from situate.core.state.classes import PodClass
from situate.core.state.cluster import Cluster
from situate.core.state.columns import Mask
from situate.core.state.view import View

CACHE_BYTES: Final = 128 << 20
"""How many bytes of verdicts are kept. The least recently used class is dropped first."""

SEEN_ONCE_LIMIT: Final = 4096
"""How many classes that were used once are remembered. From the second use on, their verdicts are cached."""


class Placer:
    """Of one profile on one cluster. With `cache` off, every verdict is computed from scratch."""

    __slots__ = (
        "_cache",
        "_caches",
        "_cluster",
        "_crowded",
        "_rounds",
        "_seen_once",
        "_shares_demands",
        "_stopwatch",
        "drawn",
        "profile",
    )

    def __init__(
        self, cluster: Cluster, profile: Profile, *, cache: bool = True, stopwatch: Stopwatch = NO_STOPWATCH
    ) -> None:
        self.profile = profile
        self._stopwatch = stopwatch
        self._cluster = cluster
        self._cache = cache
        self._shares_demands = cache and profile.reads_selected_labels
        """Whether pods whose claims ask for the same share verdicts: no plugin reads their names."""
        self._caches: dict[PodClass, VerdictCache] = {}
        self._seen_once: OrderedDict[PodClass, None] = OrderedDict()
        self._crowded = False
        """Whether the limit is near enough for the order of use to matter."""
        self._rounds = Rounds()
        self.drawn: Draw | None = None
        """The nodes that were considered for the last pod; None if those were all."""

    @property
    def samples(self) -> bool:
        """Whether not all nodes are considered: then the nodes to leave out have to be known beforehand."""
        return self.profile.sampling is not ALL_NODES and samples(self.profile, len(self._cluster.nodes.rows))

    def verdicts(self, pod: PodClass) -> VerdictCache | None:
        """The cached verdicts on a class, as of when they were last asked for; None if none are cached."""
        return self._caches.get(self._cluster.stand_ins.of(pod) if self.profile.reads_selected_labels else pod)

    def choose(self, pod: PodClass, excluded: Collection[int] = (), key: int = 0) -> int:
        """The row of the best node for a pod of this class without the excluded rows, or NOWHERE.

        `key` decides which nodes are sampled, if they are.
        """
        if self.profile.sampling is not ALL_NODES and self.samples:
            return self._among_some(pod, excluded, key)
        self.drawn = None
        if pod.spec.resource_claims and self._shares_demands:
            pod = self._cluster.claim_stand_ins.of(pod)
        if self.profile.reads_selected_labels:
            pod = self._cluster.stand_ins.of(pod)
        cache = self._caches.get(pod)
        if cache is not None:
            if self._crowded:
                del self._caches[pod]
                self._caches[pod] = cache
            return cache.choose(excluded)
        if self._cache and pod in self._seen_once:
            return self._keep(pod).choose(excluded)
        if self._cache:
            self._seen_once[pod] = None
            if len(self._seen_once) > SEEN_ONCE_LIMIT:
                self._seen_once.popitem(last=False)
        return self._from_scratch(pod, excluded)

    def _from_scratch(self, pod: PodClass, excluded: Collection[int]) -> int:
        view = View(self._cluster, once=True)
        feasible, count = feasible_rows(self.profile, pod, view)
        self._stopwatch.lap(FILTER, count > 0)
        if not count:
            return NOWHERE
        best = best_row(self.profile, pod, view, feasible, excluded)
        self._stopwatch.lap(SCORE)
        return best

    def _among_some(self, pod: PodClass, excluded: Collection[int], key: int) -> int:
        """The best of the sampled nodes. Nothing is cached: the next pod gets another sample."""
        fitting = self.looked_at(pod, excluded, key)
        fits = bool(fitting.any())
        self._stopwatch.lap(FILTER, fits)
        if not fits:
            return NOWHERE
        best = first_feasible_best(ranks(self.profile, pod, View(self._cluster), fitting), fitting)
        self._stopwatch.lap(SCORE)
        return best

    def looked_at(self, pod: PodClass, excluded: Collection[int] = (), key: int = 0) -> Mask:
        """The rows that a pod of this class fits, of those that are considered."""
        view = View(self._cluster)
        filtered = run_filters(self.profile, pod, view)
        feasible = filtered.feasible.copy()
        feasible[list(excluded)] = False
        self.drawn = None
        if not self.samples or filtered.turned_away is not None or filtered.failed is not None:
            return feasible
        nodes = self.profile.sampling.nodes
        rows = sample(view, nodes, key) if nodes else self._rounds.next(self.profile, view, filtered, feasible)
        fitting = np.zeros(view.size, np.bool_)
        fitting[rows] = feasible[rows]
        self.drawn = Draw(rows, fitting)
        return fitting

    def _keep(self, pod: PodClass) -> VerdictCache:
        del self._seen_once[pod]
        cache = self._caches[pod] = VerdictCache(self._cluster, self.profile, pod, self._stopwatch)
        room = max(1, CACHE_BYTES // max(1, cache.nbytes))  # all caches have the same size
        while len(self._caches) > room:
            del self._caches[next(iter(self._caches))]
        self._crowded = len(self._caches) > room // 2
        return cache
