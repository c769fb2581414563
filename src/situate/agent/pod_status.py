"""A pod's status as the kubelet would write it, from the state of its containers. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from situate.agent.pod_lifecycle import ContainerState, RestartBackoff, is_initialized, restart_at_ns, will_restart
from situate.agent.runtime import Run
from situate.wire.bodies import seconds_time

OWN_CONDITIONS: Final = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady")
BACK_OFF: Final = "CrashLoopBackOff"
MILLI: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class TerminationReason:
    """Why the agent terminated or rejected a pod."""

    reason: str
    message: str


def status_of(
    pod: Mapping[str, Any],
    containers: Sequence[ContainerState],
    before: Mapping[str, Any],
    *,
    now_ns: int,
    host_ip: str,
    backoff: RestartBackoff,
    ending: bool = False,
    terminated: TerminationReason | None = None,
) -> dict[str, Any]:
    """`before`: the status as last reported. `ending`: exited containers do not restart. The result has the agent's own
    conditions only."""
    phase = phase_of(pod, containers, ending=ending, terminated=terminated)
    statuses = [
        (one.kind, _container(one, _state(pod, one, containers, now_ns, backoff, ending=ending))) for one in containers
    ]
    made: dict[str, Any] = {
        "phase": phase,
        "conditions": _conditions(pod, containers, before, phase, seconds_time(now_ns)),
        "hostIP": host_ip,
        "hostIPs": [{"ip": host_ip}],
        "podIP": host_ip,
        "podIPs": [{"ip": host_ip}],
        "startTime": before.get("startTime") or seconds_time(now_ns),
        "containerStatuses": [status for kind, status in statuses if kind == "main"],
    }
    if init := [status for kind, status in statuses if kind != "main"]:
        made["initContainerStatuses"] = init
    if generation := pod["metadata"].get("generation"):
        made["observedGeneration"] = generation
    if terminated is not None:
        made |= {"reason": terminated.reason, "message": terminated.message}
    return made


def rejected_status(pod: Mapping[str, Any], why: TerminationReason, now_ns: int) -> dict[str, Any]:
    """The status of a pod that the node rejected."""
    return {
        "phase": "Failed",
        "reason": why.reason,
        "message": why.message,
        "startTime": (pod.get("status") or {}).get("startTime") or seconds_time(now_ns),
    }


def merge_status(found: Mapping[str, Any], said: Mapping[str, Any]) -> dict[str, Any]:
    """A pod's status updated with the agent's. Conditions of other writers stay."""
    conditions = [one for one in found.get("conditions", ()) if one["type"] not in OWN_CONDITIONS]
    own = [one for one in said.get("conditions", ()) if one["type"] in OWN_CONDITIONS]
    made = {**found, **said}
    if conditions or own:
        made["conditions"] = [*conditions, *own]
    return made


# -- the phase -------------------------------------------------------------------------------------------------------


def phase_of(
    pod: Mapping[str, Any],
    containers: Sequence[ContainerState],
    *,
    ending: bool,
    terminated: TerminationReason | None = None,
) -> str:
    policy = pod["spec"].get("restartPolicy", "Always")
    mains = [one for one in containers if one.kind == "main"]
    running = any(one.runs_now for one in containers)
    over = [one for one in mains if one.last is not None and one.last.is_over]
    if (ending or terminated is not None) and not running:
        failed = terminated is not None or len(over) < len(mains) or any(one.last and one.last.code for one in over)
        return "Failed" if failed else "Succeeded"
    if not is_initialized(containers):
        lost = any(
            one.kind == "init" and one.last is not None and one.last.is_over and one.last.code for one in containers
        )
        return "Failed" if lost and policy == "Never" and not running else "Pending"
    if any(one.last is None or (one.last.state == "starting" and not one.last.attempt) for one in mains):
        return "Pending"
    # A pod is not finished before its last container is: until then it holds resources of its node.
    if running or any(will_restart(one, policy) for one in mains):
        return "Running"
    if any(one.last is not None and one.last.code for one in over):
        return "Failed"
    return "Succeeded"


# -- conditions ------------------------------------------------------------------------------------------------------


def _conditions(
    pod: Mapping[str, Any], containers: Sequence[ContainerState], before: Mapping[str, Any], phase: str, now: str
) -> list[dict[str, Any]]:
    held = {one["type"]: one for one in before.get("conditions", ())}
    theirs = {one["type"]: one for one in (pod.get("status") or {}).get("conditions", ())}
    over = {"Succeeded": "PodCompleted", "Failed": "PodFailed"}.get(phase, "")
    waiting = [one.name for one in containers if one.kind != "main" and not _is_done(one)]
    unready = [one.name for one in containers if one.kind != "init" and not (one.runs_now and one.ready)]
    done = is_initialized(containers)
    gates = [one["conditionType"] for one in pod["spec"].get("readinessGates", ())]
    closed = [one for one in gates if theirs.get(one, {}).get("status") != "True"]
    ready_why = _why(over, unready, "ContainersNotReady", "containers with unready status")
    wanted: dict[str, tuple[bool, str, str]] = {
        "PodReadyToStartContainers": (not over and any(one.runs for one in containers), "", ""),
        "Initialized": (
            done,
            *(("", "") if done else _why("", waiting, "ContainersNotInitialized", "containers with incomplete status")),
        ),
        "ContainersReady": (not unready and not over, *ready_why),
        "Ready": (not unready and not over and not closed, *(ready_why if unready or over else _gates(closed))),
    }
    if over == "PodCompleted":
        wanted["Initialized"] = (True, over, "")
    return [_condition(held.get(kind), kind, *value, now) for kind, value in wanted.items()]


def _is_done(container: ContainerState) -> bool:
    if container.kind == "sidecar":
        return container.started
    return container.last is not None and container.last.is_over and not container.last.code


def _why(over: str, names: Sequence[str], reason: str, text: str) -> tuple[str, str]:
    if over:
        return over, ""
    return (reason, f"{text}: [{' '.join(names)}]") if names else ("", "")


def _gates(closed: Sequence[str]) -> tuple[str, str]:
    if not closed:
        return "", ""
    texts = [f'corresponding condition of pod readiness gate "{one}" does not exist.' for one in closed]
    return "ReadinessGatesNotReady", ", ".join(texts)


def _condition(
    held: Mapping[str, Any] | None, kind: str, value: bool, reason: str, message: str, now: str
) -> dict[str, Any]:
    status = "True" if value else "False"
    since = held["lastTransitionTime"] if held and held.get("status") == status else now
    made: dict[str, Any] = {"type": kind, "status": status, "lastTransitionTime": since}
    if reason:
        made["reason"] = reason
    if message:
        made["message"] = message
    return made


# -- containers ------------------------------------------------------------------------------------------------------


def _container(one: ContainerState, state: Mapping[str, Any]) -> dict[str, Any]:
    shown = one.last if "terminated" in state or "running" in state else None
    past = [run for run in one.runs if run.is_over and run is not shown]
    last = one.last
    done = one.kind == "init" and last is not None and last.is_over and not last.code
    return {
        "name": one.name,
        "state": state,
        "lastState": {"terminated": _terminated(past[-1])} if past else {},
        "ready": done or (one.runs_now and one.ready),
        "restartCount": 0 if last is None else last.attempt,
        "image": one.spec.get("image", ""),
        "imageID": "",
        **({} if last is None else {"containerID": last.id}),
        "started": one.runs_now and one.started,
    }


def _state(
    pod: Mapping[str, Any],
    one: ContainerState,
    containers: Sequence[ContainerState],
    now_ns: int,
    backoff: RestartBackoff,
    *,
    ending: bool,
) -> dict[str, Any]:
    last = one.last
    if last is not None and last.state == "running":
        return {"running": {"startedAt": seconds_time(last.started_ns)}}
    if last is not None and last.state == "starting":
        return {"waiting": {"reason": "ContainerCreating"}}
    again = not ending and will_restart(one, pod["spec"].get("restartPolicy", "Always"))
    if last is not None and not again:
        return {"terminated": _terminated(last)}
    if one.blocked is not None:
        return {"waiting": {"reason": one.blocked[0], "message": one.blocked[1]}}
    if last is None:
        reason = "ContainerCreating" if one.kind != "main" or is_initialized(containers) else "PodInitializing"
        return {"waiting": {"reason": reason}}
    if now_ns >= restart_at_ns(last, backoff):
        return {"terminated": _terminated(last)}
    return {"waiting": {"reason": BACK_OFF, "message": _back_off(pod, one, backoff.after(last))}}


def _back_off(pod: Mapping[str, Any], one: ContainerState, wait_ms: int) -> str:
    minutes, seconds = divmod(wait_ms // 1_000, 60)
    wait = f"{minutes}m{seconds}s" if minutes else f"{seconds}s"
    meta = pod["metadata"]
    named = f"{meta['name']}_{meta['namespace']}({meta['uid']})"
    return f"back-off {wait} restarting failed container={one.name} pod={named}"


def _terminated(run: Run) -> dict[str, Any]:
    return {
        "exitCode": run.code,
        "reason": run.reason,
        **({"message": run.message} if run.message else {}),
        "startedAt": seconds_time(run.started_ns),
        "finishedAt": seconds_time(run.finished_ns),
        "containerID": run.id,
    }
