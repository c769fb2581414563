"""The row of a pod in a table.

Its STATUS is not the phase, but the first state of its containers that a person should know, or `Terminating`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from situate.core.model.timestamp import TimestampError, epoch_ms
from situate.server.objects import Object
from situate.server.tables.cells import NONE, condition
from situate.server.tables.columns import Printer, columns_of
from situate.server.tables.durations import human_duration, since

UNREACHABLE: Final = "NodeLost"
GATED: Final = "SchedulingGated"
TERMINAL: Final = ("Succeeded", "Failed")
_NS_PER_MS: Final = 1_000_000

_COMPLETED: Final = {
    "Succeeded": "The pod has completed successfully.",
    "Failed": "The pod failed.",
}


@dataclass(slots=True)
class _Tally:
    """Totals over the containers. Restarts of init containers count until the pod is initialized."""

    reason: str
    ready: int = 0
    restarts: int = 0
    last_restart_ms: int = 0

    def count(self, status: Mapping[str, Any]) -> None:
        self.restarts += status.get("restartCount", 0)
        ended = (status.get("lastState") or {}).get("terminated")
        if ended is not None:
            self.last_restart_ms = max(self.last_restart_ms, _when(ended.get("finishedAt")))


def _cells(pod: Object, now_ns: int) -> list[Any]:
    metadata, spec, status = pod["metadata"], pod.get("spec") or {}, pod.get("status") or {}
    tally = _Tally(_first_reason(status))
    _walk(spec, status, tally)
    total = len(spec.get("containers") or ()) + sum(1 for one in spec.get("initContainers") or () if _sidecar(one))
    return [
        metadata["name"],
        f"{tally.ready}/{total}",
        _shown_reason(metadata, status, tally.reason),
        _restarts(tally, now_ns),
        since(metadata.get("creationTimestamp"), now_ns),
        _address(status),
        spec.get("nodeName") or NONE,
        status.get("nominatedNodeName") or NONE,
        _gates(spec.get("readinessGates") or (), status.get("conditions") or ()),
    ]


def _row_conditions(pod: Object) -> list[Object]:
    """Rows of ended pods carry a condition, so that a client can filter them."""
    phase = (pod.get("status") or {}).get("phase", "")
    if phase not in _COMPLETED:
        return []
    return [{"type": "Completed", "status": "True", "reason": phase, "message": _COMPLETED[phase]}]


def _first_reason(status: Mapping[str, Any]) -> str:
    for one in status.get("conditions") or ():
        if one.get("type") == "PodScheduled" and one.get("reason") == GATED:
            return GATED
    return str(status.get("reason") or status.get("phase", ""))


def _walk(spec: Mapping[str, Any], status: Mapping[str, Any], tally: _Tally) -> None:
    starting = _Tally(tally.reason)
    initialising = False
    if status.get("initContainerStatuses"):
        initialising = _init_containers(spec, status, starting, tally)
    if initialising and not _initialised(status):
        tally.reason, tally.ready = starting.reason, starting.ready
        tally.restarts, tally.last_restart_ms = starting.restarts, starting.last_restart_ms
        return
    tally.reason, tally.ready = starting.reason, starting.ready
    _containers(status, tally)


def _init_containers(spec: Mapping[str, Any], status: Mapping[str, Any], starting: _Tally, sidecars: _Tally) -> bool:
    """Returns whether the pod is still initializing. `starting` collects all init containers, `sidecars` restarts."""
    declared = {one.get("name"): one for one in spec.get("initContainers") or ()}
    for index, one in enumerate(status["initContainerStatuses"]):
        starting.count(one)
        sidecar = _sidecar(declared.get(one.get("name")))
        if sidecar:
            sidecars.count(one)
        state = one.get("state") or {}
        ended = state.get("terminated")
        if ended is not None and not ended.get("exitCode"):
            continue
        if sidecar and one.get("started"):
            starting.ready += bool(one.get("ready"))
            continue
        waiting = (state.get("waiting") or {}).get("reason", "")
        if ended is not None:
            starting.reason = f"Init:{_ending(ended)}"
        elif waiting and waiting != "PodInitializing":
            starting.reason = f"Init:{waiting}"
        else:
            starting.reason = f"Init:{index}/{len(declared)}"
        return True
    return False


def _containers(status: Mapping[str, Any], tally: _Tally) -> None:
    running, failure = False, ""
    for one in reversed(status.get("containerStatuses") or ()):
        tally.count(one)
        state = one.get("state") or {}
        ended, waiting = state.get("terminated"), (state.get("waiting") or {}).get("reason", "")
        if waiting:
            tally.reason = waiting
        elif ended is not None:
            tally.reason = _ending(ended)
            if ended.get("exitCode"):
                failure = tally.reason
        elif one.get("ready") and state.get("running") is not None:
            running = True
            tally.ready += 1
    if tally.reason == "Completed":
        # A completed container does not complete the pod while others run or have failed.
        tally.reason = _of_several(running, failure, status)


def _of_several(running: bool, failure: str, status: Mapping[str, Any]) -> str:
    ready = condition(status.get("conditions"), "Ready")
    if running and ready is not None and ready.get("status") == "True":
        return "Running"
    if failure:
        return failure
    return "NotReady" if running else "Completed"


def _ending(ended: Mapping[str, Any]) -> str:
    if ended.get("reason"):
        return str(ended["reason"])
    if ended.get("signal"):
        return f"Signal:{ended['signal']}"
    return f"ExitCode:{ended.get('exitCode', 0)}"


def _shown_reason(metadata: Mapping[str, Any], status: Mapping[str, Any], reason: str) -> str:
    if not metadata.get("deletionTimestamp"):
        return reason
    if status.get("reason") == UNREACHABLE:
        return "Unknown"
    return reason if status.get("phase") in TERMINAL else "Terminating"


def _restarts(tally: _Tally, now_ns: int) -> str:
    if not tally.restarts or not tally.last_restart_ms:
        return str(tally.restarts)
    return f"{tally.restarts} ({human_duration(now_ns // _NS_PER_MS - tally.last_restart_ms)} ago)"


def _address(status: Mapping[str, Any]) -> str:
    addresses = status.get("podIPs")
    return (addresses[0].get("ip") if addresses else "") or NONE


def _gates(gates: Sequence[Mapping[str, Any]], conditions: Sequence[Object]) -> str:
    if not gates:
        return NONE
    found = [condition(conditions, gate.get("conditionType", "")) for gate in gates]
    return f"{sum(1 for one in found if one is not None and one.get('status') == 'True')}/{len(gates)}"


def _initialised(status: Mapping[str, Any]) -> bool:
    found = condition(status.get("conditions"), "Initialized")
    return found is not None and found.get("status") == "True"


def _sidecar(container: Mapping[str, Any] | None) -> bool:
    return container is not None and container.get("restartPolicy") == "Always"


def _when(timestamp: str | None) -> int:
    try:
        return epoch_ms(timestamp) if timestamp else 0
    except TimestampError:
        return 0


PRINTER: Final = Printer(
    columns_of("Name!, Ready, Status, Restarts, Age, +IP, +Node, +Nominated Node, +Readiness Gates"),
    _cells,
    _row_conditions,
)
