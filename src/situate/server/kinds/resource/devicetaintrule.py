"""DeviceTaintRule: a taint that an administrator gives to devices, beside those of their drivers."""

from collections.abc import Mapping
from typing import Any, Final

from situate.server.kinds.conditions import conditions
from situate.server.kinds.core.pod.volumes import csi_driver
from situate.server.kinds.field_errors import Causes
from situate.server.kinds.kind import Kind
from situate.server.kinds.names import dns_label
from situate.server.kinds.resource.resourceclaim import pool_name
from situate.server.kinds.resource.taints import check_taint, stamp_taint
from situate.server.kinds.strategy import Strategy, again, drop_status, keep_status
from situate.server.objects import Object
from situate.server.tables.durations import since

MAX_CONDITIONS: Final = 8


def _stamp(obj: Object, old: Object | None, now: str) -> None:
    """A taint counts from when it was added, and again from when its effect was changed."""
    taint: dict[str, Any] = obj.setdefault("spec", {}).setdefault("taint", {})
    before: Mapping[str, Any] = {} if old is None else old.get("spec", {}).get("taint", {})
    stamp_taint(taint, now)
    is_changed = old is not None and taint.get("effect") != before.get("effect")
    if is_changed and taint["timeAdded"] == before.get("timeAdded"):
        taint["timeAdded"] = now


def _validate(obj: Object, causes: Causes) -> None:
    spec = obj.get("spec", {})
    selector = spec.get("deviceSelector") or {}
    if "driver" in selector:
        csi_driver(selector["driver"], "spec.deviceSelector.driver", causes)
    if "pool" in selector:
        pool_name(selector["pool"], "spec.deviceSelector.pool", causes)
    if "device" in selector:
        causes.check(dns_label, selector["device"], "spec.deviceSelector.device")
    check_taint(spec.get("taint", {}), "spec.taint", causes)


def _validate_status(new: Object, _old: Object, causes: Causes) -> None:
    these = new.get("status", {}).get("conditions", ())
    conditions(these, "status.conditions", causes)
    causes.at_most(MAX_CONDITIONS, these, "status.conditions")


def _time_added(obj: Object, now_ns: int) -> str:
    added = obj.get("spec", {}).get("taint", {}).get("timeAdded")
    return "" if added is None else since(added, now_ns)


KIND: Final = Kind(
    "resource.k8s.io/v1 devicetaintrules DeviceTaintRule C - - | status",
    since="1.37",
    strategy=Strategy(
        prepare_create=drop_status,
        prepare_update=keep_status,
        stamp=_stamp,
        validate=_validate,
        validate_update=again(_validate),
        validate_status=_validate_status,
        counts_generation=True,
        unconditional_update=False,
    ),
    columns="Name!, Key = spec.taint.key, Value = spec.taint.value, Effect = spec.taint.effect, TimeAdded, Age",
    timed={"TimeAdded": _time_added},
    description="DeviceTaintRule taints the devices that it selects.",
)
