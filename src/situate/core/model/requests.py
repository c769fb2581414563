"""Effective requests of a pod, and the allocatable resources of a node.

`amounts` combines the containers. Pod-level requests replace the containers'. Overhead is added. Each entry counts in
whole thousandths, as the API server rounds it. Pods have the API server's defaults, so limits without requests do not
occur.

Kubernetes computes requests in three ways:
- `pod_requests`: what a bound pod counts for. An in-place resize counts with the largest of desired, allocated and
  running: of each container, or of the whole pod, by the version of Kubernetes.
- `fit_requests`: what a pending pod requests of a node. Ignores the status.
- `score_requests`: what a pod adds when nodes are scored. Ignores the status and pod-level requests.
They are equal for a pod that was never resized and has no pod-level requests.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache

import msgspec

from situate.core.model.amounts import Amounts, Asked, add, combined, raise_to
from situate.core.model.base import EMPTY
from situate.core.model.integers import clamp_int64
from situate.core.model.node import Node
from situate.core.model.pod import Container, ContainerStatus, Pod, ResourceList
from situate.core.model.quantity import RawQuantity, milli_value, parse_milli, value
from situate.core.model.resources import CPU, EPHEMERAL_STORAGE, MEMORY, PODS, is_scalar, may_be_pod_level

# What a container without cpu or memory requests counts for in scores.
DEFAULT_MILLI_CPU = 100
DEFAULT_MEMORY = 200 * 1024 * 1024

_CACHE_SIZE = 16_384

# Amounts here are in thousandths.
_DEFAULTS: Amounts = {CPU: DEFAULT_MILLI_CPU, MEMORY: DEFAULT_MEMORY * 1000}


class Requests(msgspec.Struct, frozen=True, gc=False):
    """A pod's requests. `scalar` has no zeros. In `nonzero_...` containers without requests count with a minimum."""

    milli_cpu: int = 0
    memory: int = 0
    ephemeral_storage: int = 0
    scalar: Mapping[str, int] = EMPTY
    nonzero_milli_cpu: int = 0
    nonzero_memory: int = 0


class Resources(msgspec.Struct, frozen=True, gc=False):
    """A node's allocatable resources."""

    milli_cpu: int = 0
    memory: int = 0
    ephemeral_storage: int = 0
    pods: int = 0
    scalar: Mapping[str, int] = EMPTY


def allocatable(node: Node) -> Resources:
    listed = node.status.allocatable
    return Resources(
        milli_cpu=milli_value(listed.get(CPU, 0)),
        memory=value(listed.get(MEMORY, 0)),
        ephemeral_storage=value(listed.get(EPHEMERAL_STORAGE, 0)),
        pods=value(listed.get(PODS, 0)),
        scalar={name: value(amount) for name, amount in listed.items() if is_scalar(name)} or EMPTY,
    )


def pod_requests(pod: Pod, *, by_container: bool = True) -> Requests:
    """What a bound pod counts for on its node. `by_container`: a resize counts with the largest amounts of each
    container, else with the largest of the whole pod."""
    return _plain(pod) or (_compute(pod, status=True, pod_level=True) if by_container else _compute_resized(pod))


def fit_requests(pod: Pod) -> Requests:
    """What a pending pod requests of a node."""
    return _plain(pod) or _compute(pod, status=False, pod_level=True)


def score_requests(pod: Pod) -> Requests:
    """What the pod adds to a node in scores."""
    return _plain(pod) or _compute(pod, status=False, pod_level=False)


def _plain(pod: Pod) -> Requests | None:
    """Fast path for the most common pod, one container with cpu and memory; None for any other."""
    spec, status = pod.spec, pod.status
    if len(spec.containers) != 1 or spec.init_containers or spec.resources is not None or spec.overhead:
        return None
    if status.container_statuses or status.resources is not None:
        return None
    asked = spec.containers[0].resources.requests
    if len(asked) != 2 or CPU not in asked or MEMORY not in asked:
        return None
    return _cpu_and_memory(asked[CPU], asked[MEMORY])


@lru_cache(maxsize=_CACHE_SIZE)
def _cpu_and_memory(cpu: RawQuantity, memory: RawQuantity) -> Requests:
    milli_cpu, memory_bytes = milli_value(cpu), value(memory)
    return Requests(milli_cpu, memory_bytes, 0, EMPTY, milli_cpu, memory_bytes)


def _compute(pod: Pod, *, status: bool, pod_level: bool) -> Requests:
    own = _pod_level(pod, status=status) if pod_level else {}
    overhead = _amounts(pod.spec.overhead)
    containers = _asked(pod, pod.spec.containers, pod.status.container_statuses if status else ())
    # Of init containers, only sidecars can be resized; the status of others is outdated.
    inits = _asked(pod, pod.spec.init_containers, pod.status.init_container_statuses if status else (), sidecars=True)
    total = _total(containers, inits, own, overhead)
    missing = {name: amount for name, amount in _DEFAULTS.items() if not own or name not in total}
    nonzero = _total(_filled(containers, missing), _filled(inits, missing), own, overhead) if missing else total
    return _requests(total, nonzero)


def _compute_resized(pod: Pod) -> Requests:
    """What a bound pod counts for by the largest of three sums: desired, allocated and running."""
    own = _largest_pod_level(pod)
    overhead = _amounts(pod.spec.overhead)
    total = {**_largest(pod, {}), **own}
    add(total, overhead)
    is_set = pod.spec.resources is not None and any(map(may_be_pod_level, pod.spec.resources.requests))
    missing = {name: amount for name, amount in _DEFAULTS.items() if not is_set or name not in total}
    nonzero = {**_largest(pod, missing), **own}
    add(nonzero, overhead)
    return _requests(total, nonzero)


def _largest(pod: Pod, missing: Amounts) -> Amounts:
    """The largest sums over containers. A sum falls back on allocated, then on desired, where a container reports
    none; `missing` is what a container without a request counts for."""
    status = pod.status
    reported = {one.name: one for one in (*status.init_container_statuses, *status.container_statuses)}
    infeasible = _is_infeasible(pod)

    def desired(container: Container) -> ResourceList:
        return container.resources.requests

    def allocated(container: Container) -> ResourceList:
        known = reported.get(container.name)
        if known is not None and known.allocated_resources:
            return known.allocated_resources
        return EMPTY if infeasible else container.resources.requests

    def running(container: Container) -> ResourceList:
        known = reported.get(container.name)
        if known is not None and known.resources is not None and known.resources.requests:
            return known.resources.requests
        return allocated(container)

    def summed(of: Callable[[Container], ResourceList]) -> Amounts:
        containers, inits = (
            [({**missing, **_amounts(of(one))}, one.restart_policy == "Always") for one in each]
            for each in (pod.spec.containers, pod.spec.init_containers)
        )
        return combined(containers, inits)

    largest = {} if infeasible else summed(desired)
    if status.allocated_resources and status.resources is not None and status.resources.requests:
        raise_to(largest, _amounts(status.resources.requests))
        raise_to(largest, _amounts(status.allocated_resources))
    else:
        raise_to(largest, summed(running))
        raise_to(largest, summed(allocated))
    return largest


def _largest_pod_level(pod: Pod) -> Amounts:
    """Pod-level requests, or what they count for during a resize."""
    listed, reported = pod.spec.resources, pod.status.resources
    if listed is None or not any(map(may_be_pod_level, listed.requests)):
        return {}
    found = _amounts(listed.requests)
    if reported is not None:
        found = _resized(pod, found, reported.requests, pod.status.allocated_resources)
    return {name: amount for name, amount in found.items() if may_be_pod_level(name)}


def _requests(total: Amounts, nonzero: Amounts) -> Requests:
    return Requests(
        milli_cpu=clamp_int64(total.get(CPU, 0)),
        memory=_units(total.get(MEMORY, 0)),
        ephemeral_storage=_units(total.get(EPHEMERAL_STORAGE, 0)),
        scalar={name: _units(amount) for name, amount in total.items() if amount and is_scalar(name)} or EMPTY,
        nonzero_milli_cpu=clamp_int64(nonzero.get(CPU, 0)),
        nonzero_memory=_units(nonzero.get(MEMORY, 0)),
    )


def _units(milli: int) -> int:
    return clamp_int64(-(-milli // 1000))


def _asked(
    pod: Pod, containers: Iterable[Container], statuses: Iterable[ContainerStatus], *, sidecars: bool = False
) -> list[Asked]:
    """The requests of each container, or what it counts for during a resize."""
    by_name = {one.name: one for one in statuses}
    found = []
    for container in containers:
        amounts = _amounts(container.resources.requests)
        is_sidecar = container.restart_policy == "Always"
        reported = by_name.get(container.name) if is_sidecar or not sidecars else None
        if reported is not None and reported.resources is not None:
            amounts = _resized(pod, amounts, reported.resources.requests, reported.allocated_resources)
        found.append((amounts, is_sidecar))
    return found


def _resized(pod: Pod, wanted: Amounts, running: ResourceList, granted: ResourceList) -> Amounts:
    """The largest of all three, without an infeasible resize."""
    largest = {} if _is_infeasible(pod) else dict(wanted)
    raise_to(largest, _amounts(running))
    raise_to(largest, _amounts(granted))
    return largest


def _is_infeasible(pod: Pod) -> bool:
    """Whether the node can never grant the resize."""
    pending = next((one for one in pod.status.conditions if one.type == "PodResizePending"), None)
    return pending is not None and pending.reason == "Infeasible"


def _total(containers: Iterable[Asked], inits: Iterable[Asked], own: Amounts, overhead: Amounts) -> Amounts:
    total = combined(containers, inits)
    total.update(own)
    add(total, overhead)
    return total


def _pod_level(pod: Pod, *, status: bool) -> Amounts:
    """Pod-level requests: only cpu, memory and huge pages."""
    listed = pod.spec.resources
    if listed is None:
        return {}
    wanted = {name: amount for name, amount in _amounts(listed.requests).items() if may_be_pod_level(name)}
    reported = pod.status.resources
    if not status or reported is None:
        return wanted
    reached = _resized(pod, wanted, reported.requests, pod.status.allocated_resources)
    return {name: reached.get(name, 0) for name in wanted}


def _filled(asked: Iterable[Asked], missing: Amounts) -> list[Asked]:
    return [({**missing, **amounts}, is_sidecar) for amounts, is_sidecar in asked]


def _amounts(listed: ResourceList) -> Amounts:
    return {name: parse_milli(amount) for name, amount in listed.items()}
