"""JobSelector: a Job knows its pods by its own uid, unless it brings a selector."""

from __future__ import annotations

from typing import Final

from situate.core.reconcile.admission import with_job_selector
from situate.server.asking import Caller, Object, Target
from situate.server.registry.ports import Action
from situate.server.resources import BY_KIND

__all__ = ["JobSelector"]

JOB: Final = BY_KIND["batch/v1", "Job"]


class JobSelector:
    async def admit(
        self, action: Action, target: Target, new: Object | None, old: Object | None, caller: Caller
    ) -> None:
        if new is not None and target.resource is JOB and action == "create":
            new.update(with_job_selector(new, new["metadata"]["uid"]))
