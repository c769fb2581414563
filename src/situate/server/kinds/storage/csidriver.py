"""CSIDriver: how a CSI driver is used."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from situate.core.model.integers import next_int64
from situate.server.kinds.field_errors import Causes
from situate.server.kinds.kind import Kind
from situate.server.kinds.strategy import Strategy
from situate.server.objects import Object
from situate.server.tables.cells import NONE, UNSET

SHORTEST_TOKEN_S: Final = 600
LONGEST_TOKEN_S: Final = 2**32
LEAST_PERIOD_S: Final = 10


def _default_driver(obj: Object) -> None:
    spec = obj.setdefault("spec", {})
    spec.setdefault("attachRequired", True)
    for name in ("podInfoOnMount", "storageCapacity", "requiresRepublish", "seLinuxMount"):
        spec.setdefault(name, False)
    spec.setdefault("fsGroupPolicy", "ReadWriteOnceWithFSType")
    if not spec.get("volumeLifecycleModes"):
        spec["volumeLifecycleModes"] = ["Persistent"]


def _prepare_driver_update(new: Object, old: Object) -> None:
    """A driver has no generation before its first change."""
    was = old.get("metadata", {}).get("generation", 0)
    if new.get("spec") != old.get("spec"):
        new.setdefault("metadata", {})["generation"] = next_int64(was)


def _validate_driver(obj: Object, causes: Causes) -> None:
    spec = obj.get("spec", {})
    groups = ("File", "None", "ReadWriteOnceWithFSType")
    causes.one_of(spec.get("fsGroupPolicy", "None"), groups, "spec.fsGroupPolicy")
    tokens = spec.get("tokenRequests", ())
    _tokens(tokens, causes)
    for mode in spec.get("volumeLifecycleModes", ()):
        causes.one_of(mode, ("Persistent", "Ephemeral"), "spec.volumeLifecycleModes")
    period = spec.get("nodeAllocatableUpdatePeriodSeconds")
    if period is not None and period < LEAST_PERIOD_S:
        text = f"must be greater than or equal to {LEAST_PERIOD_S} seconds"
        causes.invalid("spec.nodeAllocatableUpdatePeriodSeconds", period, text)
    if "serviceAccountTokenInSecrets" in spec and not tokens:
        text = "serviceAccountTokenInSecrets is set but no tokenRequests are specified"
        value = spec["serviceAccountTokenInSecrets"]
        causes.invalid("spec.serviceAccountTokenInSecrets", value, text)


def _tokens(requests: Sequence[Mapping[str, Any]], causes: Causes) -> None:
    audiences: set[str] = set()
    for index, request in enumerate(requests):
        at, audience = f"spec.tokenRequests[{index}]", request.get("audience", "")
        if audience in audiences:
            causes.duplicate(f"{at}.audience", audience)
            continue
        audiences.add(audience)
        seconds = request.get("expirationSeconds")
        if seconds is None:
            continue
        if seconds < SHORTEST_TOKEN_S:
            causes.invalid(f"{at}.expirationSeconds", seconds, "may not specify a duration less than 10 minutes")
        if seconds > LONGEST_TOKEN_S:
            causes.invalid(f"{at}.expirationSeconds", seconds, "may not specify a duration larger than 2^32 seconds")


def _validate_driver_update(new: Object, old: Object, causes: Causes) -> None:
    _validate_driver(new, causes)
    spec, was = new.get("spec", {}), old.get("spec", {})
    causes.immutable(spec.get("attachRequired"), was.get("attachRequired"), "spec.attachedRequired")
    modes = spec.get("volumeLifecycleModes")
    causes.immutable(modes, was.get("volumeLifecycleModes"), "spec.volumeLifecycleModes")


def _audiences(obj: Object) -> str:
    requests = (obj.get("spec") or {}).get("tokenRequests")
    return UNSET if requests is None else ",".join([one.get("audience", "") for one in requests])


def _modes_shown(obj: Object) -> str:
    return ",".join((obj.get("spec") or {}).get("volumeLifecycleModes") or ()) or NONE


KIND: Final = Kind(
    "storage.k8s.io/v1 csidrivers CSIDriver C - -",
    strategy=Strategy(
        default=_default_driver,
        prepare_update=_prepare_driver_update,
        validate=_validate_driver,
        validate_update=_validate_driver_update,
        unconditional_update=False,
    ),
    columns="""
        Name!, AttachRequired? = spec.attachRequired|true, PodInfoOnMount? = spec.podInfoOnMount,
        StorageCapacity? = spec.storageCapacity, TokenRequests, RequiresRepublish? = spec.requiresRepublish, Modes,
        Age
        """,
    cells={"TokenRequests": _audiences, "Modes": _modes_shown},
    description="CSIDriver says how Kubernetes uses a storage driver.",
)
