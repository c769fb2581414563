"""The life cycle of a simulated pod: its next status, and when. Pure, and the same for the same pod.

A pod runs a moment after it was bound. One with restartPolicy Always runs for ever. Any other finishes after the time
in its annotation RUN_FOR, or once its containers have slept, with the exit code in EXIT_CODE. If its spec changes while
it runs, it gets the new images, and says which generation it has seen. A pod that is being deleted goes at once.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Literal, TypedDict, cast
from zlib import crc32

import msgspec

from situate.core.model.refs import Millis
from situate.wire.bodies import seconds_time

RUN_FOR: Final = "hollow.situate.dev/run-for"
"""How long a pod runs: `90s`, `500ms`, `5m`."""
EXIT_CODE: Final = "hollow.situate.dev/exit-code"
START_MS: Final = 50
RUN_MS: Final = 2_000
LONGEST_RUN_MS: Final = 7 * 24 * 3_600_000
LONGEST_RUN: Final = "168h"
"""The same, for the annotation."""
FIRST: Final = 1
"""The generation of a new pod. One that runs has seen it, whether its status says so or not."""
UNITS_MS: Final = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000}

_TIME: Final = re.compile(r"([0-9]{1,9})(ms|s|m|h)", re.ASCII)
_SLEEP_MS: Final = {"": 1_000, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_SLEEP: Final = re.compile(
    r"(?:exec )?(?:/usr)?(?:/bin/)?sleep (?:([0-9]{1,9}(?:\.[0-9]{1,9})?)([smhd]?)|infinity)", re.ASCII
)
_SHELLS: Final = ("sh", "/bin/sh", "bash", "/bin/bash")
_CODE: Final = re.compile(r"[0-9]{1,3}", re.ASCII)


class _ReadMetadata(TypedDict, total=False):
    namespace: str
    name: str
    uid: str
    deletionTimestamp: str | None
    generation: int
    annotations: dict[str, str]


class _ReadContainer(TypedDict, total=False):
    name: str
    image: str
    command: list[str] | None
    args: list[str] | None
    restartPolicy: str


class _ReadSpec(TypedDict, total=False):
    nodeName: str
    restartPolicy: str
    hostNetwork: bool
    readinessGates: list[dict[str, str]]
    containers: list[_ReadContainer]
    initContainers: list[_ReadContainer]
    resourceClaims: list[dict[str, Any]] | None


class _ReadPod(TypedDict, total=False):
    metadata: _ReadMetadata
    spec: _ReadSpec
    status: dict[str, Any]


decode_pod: Final = cast(Callable[[bytes], dict[str, Any]], msgspec.json.Decoder(_ReadPod).decode)
"""A pod with the fields that hollow nodes read, and its whole status. Each pod is decoded several times, and most of it
is its spec."""


@dataclass(frozen=True, slots=True)
class PodTransition:
    to: Literal["running", "changed", "finished", "deleted"]
    after_ms: Millis


def next_transition(pod: dict[str, Any]) -> PodTransition | None:
    """The next transition of a pod on a hollow node; None: none until it changes."""
    meta, status = pod["metadata"], pod.get("status", {})
    phase = status.get("phase", "Pending")
    if meta.get("deletionTimestamp"):
        return PodTransition("deleted", 0)
    if phase == "Pending":
        return PodTransition("running", START_MS)
    if phase == "Running" and meta.get("generation", 0) > max(status.get("observedGeneration", 0), FIRST):
        return PodTransition("changed", 0)
    if phase == "Running" and pod["spec"].get("restartPolicy", "Always") != "Always":
        return PodTransition("finished", _run_ms(meta.get("annotations", {}), pod["spec"]))
    return None


def status_after(transition: PodTransition, pod: dict[str, Any], now_ns: int, host_ip: str) -> dict[str, Any]:
    """The status that a kubelet would write after the transition."""
    now = seconds_time(now_ns)
    generation = pod["metadata"].get("generation")
    seen = {"observedGeneration": generation} if generation else {}
    old = {**pod.get("status", {}), **seen}
    if transition.to == "changed":
        return {**old, **_with_images(old, pod["spec"])}
    if transition.to == "running":
        return {
            **old,
            "phase": "Running",
            "conditions": _conditions(old, pod, now, ready=True),
            "hostIP": host_ip,
            "hostIPs": [{"ip": host_ip}],
            **_addresses(pod, host_ip),
            "startTime": now,
            **_containers(pod, {"running": {"startedAt": now}}, now, ready=True),
        }
    code = _exit_code(pod["metadata"].get("annotations", {}))
    ended = {
        "terminated": {
            "exitCode": code,
            "reason": "Error" if code else "Completed",
            "startedAt": old.get("startTime", now),
            "finishedAt": now,
        }
    }
    return {
        **old,
        "phase": "Failed" if code else "Succeeded",
        "conditions": _conditions(old, pod, now, ready=False),
        **_containers(pod, ended, now, ready=False),
    }


def _with_images(status: dict[str, Any], spec: dict[str, Any]) -> dict[str, Any]:
    """The states of the containers, with the images that the spec has now."""
    images = {one["name"]: one.get("image", "") for of in ("containers", "initContainers") for one in spec.get(of, ())}
    return {
        of: [{**one, "image": images.get(one["name"], one.get("image", ""))} for one in status[of]]
        for of in ("containerStatuses", "initContainerStatuses")
        if of in status
    }


def _run_ms(annotations: dict[str, str], spec: dict[str, Any]) -> Millis:
    found = _TIME.fullmatch(annotations.get(RUN_FOR, ""))
    if found:
        return min(int(found[1]) * UNITS_MS[found[2]], LONGEST_RUN_MS)
    return max((_slept_ms(one) for one in spec.get("containers", ())), default=RUN_MS)


def _slept_ms(container: dict[str, Any]) -> Millis:
    """How long a container runs whose command is `sleep`, with or without a shell; RUN_MS for any other."""
    words = [*(container.get("command") or ()), *(container.get("args") or ())]
    if len(words) == 3 and words[0] in _SHELLS and words[1] == "-c":
        words = words[2:]
    found = _SLEEP.fullmatch(" ".join(words))
    if found is None:
        return RUN_MS
    asked = LONGEST_RUN_MS if found[1] is None else int(float(found[1]) * _SLEEP_MS[found[2]])
    return min(asked, LONGEST_RUN_MS)


def _exit_code(annotations: dict[str, str]) -> int:
    said = annotations.get(EXIT_CODE, "")
    return min(int(said), 255) if _CODE.fullmatch(said) else 0


def _addresses(pod: dict[str, Any], host_ip: str) -> dict[str, Any]:
    """A made-up address; nobody answers there."""
    number = crc32(pod["metadata"].get("uid", "").encode())
    ip = (
        host_ip if pod["spec"].get("hostNetwork") else f"10.{64 + number % 64}.{number >> 8 & 255}.{number >> 16 & 255}"
    )
    return {"podIP": ip, "podIPs": [{"ip": ip}]}


def _conditions(old: dict[str, Any], pod: dict[str, Any], now: str, *, ready: bool) -> list[dict[str, Any]]:
    """The kubelet's conditions next to those of others. Closed readiness gates keep the pod unready."""
    before = {one["type"]: one for one in old.get("conditions", ())}
    gates = [gate["conditionType"] for gate in pod["spec"].get("readinessGates", ())]
    open_gates = all(before.get(gate, {}).get("status") == "True" for gate in gates)
    wanted = {
        "PodReadyToStartContainers": ready,
        "Initialized": True,
        "Ready": ready and open_gates,
        "ContainersReady": ready,
    }
    reason = "ReadinessGatesNotReady" if ready else "PodCompleted"
    return [
        *(one for kind, one in before.items() if kind not in wanted),
        *(_condition(before.get(kind), kind, value, now, reason) for kind, value in wanted.items()),
    ]


def _condition(before: dict[str, Any] | None, kind: str, value: bool, now: str, reason: str) -> dict[str, Any]:
    """`reason`: if it is not true."""
    status = "True" if value else "False"
    if before is not None and before.get("status") == status:
        return before
    made: dict[str, Any] = {"type": kind, "status": status, "lastTransitionTime": now}
    return made if value or kind == "PodReadyToStartContainers" else {**made, "reason": reason}


def _containers(pod: dict[str, Any], state: dict[str, Any], now: str, *, ready: bool) -> dict[str, Any]:
    spec, uid = pod["spec"], pod["metadata"].get("uid", "")
    statuses: dict[str, Any] = {
        "containerStatuses": [_container(one, uid, state, ready=ready) for one in spec.get("containers", ())]
    }
    if spec.get("initContainers"):
        done = {"terminated": {"exitCode": 0, "reason": "Completed", "startedAt": now, "finishedAt": now}}
        statuses["initContainerStatuses"] = [
            _container(one, uid, state, ready=ready)
            if one.get("restartPolicy") == "Always"
            else _container(one, uid, done, ready=True, started=False)
            for one in spec["initContainers"]
        ]
    return statuses


def _container(
    container: dict[str, Any], uid: str, state: dict[str, Any], *, ready: bool, started: bool | None = None
) -> dict[str, Any]:
    number = crc32(f"{uid}/{container['name']}".encode())
    return {
        "name": container["name"],
        "state": state,
        "lastState": {},
        "ready": ready,
        "restartCount": 0,
        "image": container.get("image", ""),
        "imageID": "",
        "containerID": f"hollow://{number:08x}",
        "started": ready if started is None else started,
    }
