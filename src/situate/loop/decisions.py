"""Logs decisions, as kube-scheduler does at -v=2."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from situate.core.changes import BindDone, BindFailed, Change, Millis
from situate.core.effects import Effect, Evict, SetCondition
from situate.core.engine.engine import Engine
from situate.loop.logs import Log

LEVEL: Final = 2

_log = Log(__name__)
_decided = _log.v(LEVEL)


class DecisionLog:
    """A StepObserver. It costs nothing at a lower verbosity."""

    def before(self, engine: Engine, now: Millis, changes: Sequence[Change]) -> None:
        # Before the step, the ledger still has the reservation of a bind that is done, with its node.
        if not _decided.enabled:
            return
        nodes = len(engine.cluster.nodes.rows)
        for change in changes:
            if isinstance(change, BindDone):
                found = engine.state.reservations.get(change.pod.key)
                if found is not None and found.attempt == change.attempt:
                    _decided.info(
                        "Successfully bound pod to node", pod=change.pod.key, node=found.node, evaluatedNodes=nodes
                    )
            elif isinstance(change, BindFailed):
                _decided.info("Failed to bind pod", pod=change.pod.key, err=change.problem)

    def after(self, engine: Engine, now: Millis, effects: Sequence[Effect], seconds: float) -> None:
        if not _decided.enabled:
            return
        for effect in effects:
            if isinstance(effect, SetCondition) and effect.type == "PodScheduled":
                what = "Unable to schedule pod" if effect.reason == "Unschedulable" else "Pod is not scheduled"
                _decided.info(what, pod=effect.pod.key, reason=effect.reason, err=effect.message)
            elif isinstance(effect, Evict):
                _decided.info(
                    "Preempting pod", victim=effect.victim.key, node=effect.node, preemptor=effect.preemptor.key
                )
