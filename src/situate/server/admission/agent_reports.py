"""Keeps the annotations that agents write with a pod's status: they belong to that pod, and no other write sets them.

`kubectl debug --copy-to` and a restored manifest bring those of another pod. The server would take them for reports of
this pod's agent, and reject the true ones as older.
"""

from __future__ import annotations

from typing import Final

from situate.core.reconcile.nodes.reports import REPORT
from situate.server.registry.ports import Action
from situate.server.requests import Caller, Object, Target
from situate.server.resources import BY_KIND

POD: Final = BY_KIND["v1", "Pod"]


class AgentReports:
    async def admit(
        self, action: Action, target: Target, new: Object | None, old: Object | None, caller: Caller
    ) -> None:
        if new is None or target.resource is not POD or target.subresource:
            return
        held = None if old is None else (old["metadata"].get("annotations") or {}).get(REPORT)
        annotations = new["metadata"].get("annotations") or {}
        if annotations.get(REPORT) == held:
            return
        annotations = {key: value for key, value in annotations.items() if key != REPORT}
        if held is not None:
            annotations[REPORT] = held
        new["metadata"]["annotations"] = annotations

    def version(self, target: Target) -> int | None:
        return 0 if target.resource is POD else None
