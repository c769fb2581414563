"""The pods that may be evicted for a gang: those below a priority, on a draft that loses some of them."""

from __future__ import annotations

from collections.abc import Sequence

from situate.core.preempt.lower_priority import LowerPods
from situate.core.state.pods import BoundPod
from situate.core.state.view import View


class LowerOnDraft(LowerPods):
    """Computed once for a draft; then only the rows that lose a pod are computed again."""

    __slots__ = ()

    def gone(self, pods: Sequence[BoundPod], view: View) -> None:
        """These pods were removed from the draft, which looks like `view` now."""
        self.view = view
        for pod in pods:
            if pod.kind.priority < self.priority:
                takes = dict(pod.kind.takes)
                for column, taken in self._taken.items():
                    taken[pod.node_row] -= takes.get(column, 0)
                self._drop(pod.node_row)
