"""The ServiceCIDR `kubernetes`: the range from which services get their addresses."""

from __future__ import annotations

from http import HTTPStatus
from typing import Final

from situate.server.errors import StatusError
from situate.server.kinds.core.service.prepare import ADDRESSES
from situate.server.registry.registry import Registry
from situate.server.requests import SYSTEM, Object, Target
from situate.server.resources import BY_KIND
from situate.wire.bodies import seconds_time

RANGE: Final = BY_KIND["networking.k8s.io/v1", "ServiceCIDR"]
NAME: Final = "kubernetes"
READY: Final = "Ready"


async def ensure_service_range(registry: Registry, now_ns: int) -> None:
    """Create it, and say that it is ready. One with other addresses, which somebody else made, is left alone."""
    if registry.cache.get(RANGE, "", NAME) is None:
        spec = {"cidrs": [str(ADDRESSES)]}
        made = {"apiVersion": RANGE.api_version, "kind": RANGE.kind, "metadata": {"name": NAME}, "spec": spec}
        try:
            await registry.create(Target(RANGE), made, SYSTEM)
        except StatusError as error:
            if error.code != HTTPStatus.CONFLICT:  # another server was faster
                raise

    def ready(found: Object, _: object) -> Object:
        conditions = found.get("status", {}).get("conditions", [])
        ours = found.get("spec", {}).get("cidrs") == [str(ADDRESSES)]
        if not ours or any(one["type"] == READY for one in conditions):
            return found
        since = seconds_time(now_ns)
        condition = {"type": READY, "status": "True", "reason": "", "lastTransitionTime": since}
        words = {"message": "Services get their addresses from this range."}
        return {**found, "status": {"conditions": [*conditions, {**condition, **words}]}}

    await registry.modify(Target(RANGE, "", NAME, "status"), ready, SYSTEM)
