"""The compared policies, each as a scheduler configuration document."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

from situate.core.config.types import API_VERSION, KIND
from situate.core.engine.framework import build_frameworks
from situate.core.model.gpu import DEVICE_MILLI
from situate.core.place.profile import Profile
from situate.core.plugins.support.typical_pods import MAX_TYPICAL_PODS
from situate.sim.openb.baselines import DotProduct, GpuClustering, GpuPacking
from situate.sim.openb.objects import MODEL_LABEL, TOTAL_RESOURCE
from situate.sim.openb.trace_files import TracePod, TraceRequest
from situate.wire.config import config_of

TYPICAL_PERCENT: Final = 95
"""The most common kinds of pods that make up this share are typical, without their memory, as in the paper. Foresight
expects all kinds, because the largest pods are rare, and with their memory, because that runs out on some nodes."""

RANDOM: Final = "Random"
"""The only policy that is not a plugin: plugins are deterministic."""

_RIVALS: Final[Mapping[str, type]] = {
    f"{kind.__module__}:{kind.__name__}": kind for kind in (DotProduct, GpuPacking, GpuClustering)
}
_BY_NAME: Final = {kind.__name__: name for name, kind in _RIVALS.items()}

_SCORERS: Final[Mapping[str, str]] = {
    "DotProd": _BY_NAME["DotProduct"],
    "GpuClustering": _BY_NAME["GpuClustering"],
    "GpuPacking": _BY_NAME["GpuPacking"],
    "BestFit": "BinPack",
    "FGD": "Fragmentation",
    "Foresight": "Foresight",
}
POLICIES: Final = (RANDOM, *_SCORERS)
"""The authors' names; the last one is ours. FGD is our Fragmentation."""


def configuration(policy: str, trace: Sequence[TracePod]) -> dict[str, Any]:
    """The configuration document of a policy. All policies share the filters: models, resources and devices."""
    filters = [{"name": name} for name in ("NodeAffinity", "NodeResourcesFit", "GpuShare")]
    plugins: dict[str, Any] = {
        "multiPoint": {"disabled": [{"name": "*"}], "enabled": [{"name": "PrioritySort"}, {"name": "DefaultBinder"}]},
        "filter": {"enabled": filters},
        "reserve": {"enabled": [{"name": "GpuShare"}]},
    }
    arguments: list[dict[str, Any]] = []
    if (scorer := _SCORERS.get(policy)) is not None:
        plugins["score"] = {"enabled": [{"name": scorer, "weight": 1}]}
        if args := _arguments(scorer, trace):
            arguments.append({"name": scorer, "args": args})
        if "typicalPods" in args:
            plugins["reserve"]["enabled"].append({"name": scorer})
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "profiles": [{"schedulerName": policy.lower(), "plugins": plugins, "pluginConfig": arguments}],
    }


def profile_of(document: Mapping[str, Any], file: str = "") -> Profile:
    deciding = build_frameworks(config_of(document, file), _RIVALS)
    return next(iter(deciding.values())).profile


def _arguments(scorer: str, trace: Sequence[TracePod]) -> dict[str, Any]:
    if scorer == "BinPack":
        return {"resources": [{"name": "cpu", "weight": 1}, {"name": TOTAL_RESOURCE, "weight": 1}]}
    if scorer == "Fragmentation":
        return {"typicalPods": typical(trace)}
    if scorer == "Foresight":
        with_memory = len({pod.ask for pod in trace}) <= MAX_TYPICAL_PODS
        return {"typicalPods": typical(trace, percent=100, with_memory=with_memory)}
    return {}


def typical(
    trace: Sequence[TracePod], *, percent: int = TYPICAL_PERCENT, with_memory: bool = False
) -> list[dict[str, Any]]:
    """The typical pods of the trace, the most common first."""
    counts = Counter(pod.ask if with_memory else _without_memory(pod.ask) for pod in trace)
    found: list[dict[str, Any]] = []
    counted = 0
    for ask, count in sorted(counts.items(), key=lambda one: (-one[1], one[0])):
        if counted * 100 >= percent * len(trace) or len(found) == MAX_TYPICAL_PODS:
            break
        counted += count
        found.append(_described(ask, count))
    return found


def _without_memory(ask: TraceRequest) -> TraceRequest:
    return TraceRequest(ask.milli_cpu, 0, ask.gpus, ask.gpu_milli, ask.models)


def _described(ask: TraceRequest, count: int) -> dict[str, Any]:
    said: dict[str, Any] = {"weight": count, "cpu": f"{ask.milli_cpu}m"}
    if ask.memory_mib:
        said["memory"] = f"{ask.memory_mib}Mi"
    if 0 < ask.demand < DEVICE_MILLI:
        said["gpuMilli"] = ask.gpu_milli
    elif ask.gpus:
        said["gpu"] = ask.gpus
    if ask.models:
        said["nodes"] = {MODEL_LABEL: list(ask.models)}
    return said
