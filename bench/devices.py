"""`make bench-devices`: pods that claim devices, per second, beside kube-scheduler's own algorithm on the same claims.

Every node has eight devices, and every pod has a claim made from one template: one device of a class, chosen by a
selector. situate's figure is of whole engine steps: queue, decision, reservation and effects; it evaluates every node.
kube-scheduler's is of its `SchedulePod` and its Reserve, without queue and API server; it evaluates a part of the
nodes, as it does by default. It needs the oracle (`make oracle`, which needs Go); else only situate is measured.

    python bench/devices.py                      all of it, as a table
    python bench/devices.py measure NODES PODS   situate alone, one line of JSON
"""

from __future__ import annotations

import gc
import json
import resource
import sys
import tempfile
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import msgspec
import workloads
from run import ORACLE, best, machine, measure

from situate.core.changes import BindDone, Change, ClaimsBound, NodeSeen, ObjectSeen, PodSeen
from situate.core.config.defaults import default_configuration
from situate.core.effects import Bind, BindClaims
from situate.core.engine.engine import Engine
from situate.core.model.defaults import defaulted
from situate.core.model.devices import DeviceClass, ResourceClaim, ResourceSlice
from situate.core.model.node import Node
from situate.core.model.pod import Pod

DRIVER = "gpu.example.com"
DEVICES = 8
BATCH = 1_000
STEP_MS = 10
RUNS = 3
CASES = ((500, 2_000, 200), (5_000, 4_000, 60))
"""Nodes, pods, and how many of them kube-scheduler gets: it is slower."""

Object = dict[str, Any]


def device_class() -> Object:
    selector = {"cel": {"expression": f'device.driver == "{DRIVER}"'}}
    meta = {"name": "gpu"}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": meta,
        "spec": {"selectors": [selector]},
    }


def slice_of(at: int) -> Object:
    devices = [
        {
            "name": f"gpu-{number}",
            "attributes": {"model": {"string": "a100"}, "index": {"int": number}},
            "capacity": {"memory": {"value": "40Gi"}},
        }
        for number in range(DEVICES)
    ]
    pool = {"name": f"node-{at}", "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": DRIVER, "pool": pool, "nodeName": f"node-{at}", "devices": devices}
    meta = {"name": f"node-{at}-gpu"}
    return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": meta, "spec": spec}


def claim(at: int) -> Object:
    wanted = 'device.capacity["gpu.example.com"].memory.compareTo(quantity("20Gi")) >= 0'
    exactly = {"deviceClassName": "gpu", "selectors": [{"cel": {"expression": wanted}}], "count": 1}
    owner = {"apiVersion": "v1", "kind": "Pod", "name": f"pod-{at}", "uid": f"pod-{at}", "controller": True}
    meta = {"name": f"claim-{at}", "namespace": "default", "uid": f"claim-{at}", "ownerReferences": [owner]}
    spec = {"devices": {"requests": [{"name": "gpu", "exactly": exactly | {"allocationMode": "ExactCount"}}]}}
    return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": meta, "spec": spec}


def pod(at: int) -> Object:
    made = workloads.pod(f"pod-{at}")
    made["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": "one-gpu"}]
    made["spec"]["containers"][0]["resources"]["claims"] = [{"name": "gpu"}]
    made["status"] = {"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": f"claim-{at}"}]}
    return made


def write(nodes: int, pods: int, file: Path) -> None:
    """The workload as kube-scheduler's side reads it."""
    objects = [device_class(), *map(slice_of, range(nodes)), *map(claim, range(pods))]
    made = {"nodes": [workloads.node(at) for at in range(nodes)], "bound": [], "objects": objects}
    file.write_text(json.dumps(made | {"pending": [pod(at) for at in range(pods)]}))


def place(nodes: int, count: int) -> Object:
    """Place the pods; reading and building objects is not timed."""
    engine = Engine(default_configuration())
    engine.step(0, [NodeSeen(defaulted(msgspec.convert(workloads.node(at), Node))) for at in range(nodes)])
    slices = [ObjectSeen(msgspec.convert(slice_of(at), ResourceSlice)) for at in range(nodes)]
    engine.step(0, [ObjectSeen(msgspec.convert(device_class(), DeviceClass)), *slices])
    engine.step(0, [ObjectSeen(msgspec.convert(claim(at), ResourceClaim)) for at in range(count)])
    pods = [defaulted(msgspec.convert(pod(at), Pod)) for at in range(count)]
    gc.collect()
    gc.freeze()
    wall = cpu = 0.0
    given: set[tuple[str, str]] = set()
    bound = 0
    answers: list[Change] = []
    for step, begin in enumerate(range(0, count + 3 * BATCH, BATCH), 1):  # the last steps have answers alone to hear
        changes = [*answers, *(PodSeen(one) for one in pods[begin : begin + BATCH])]
        started_at, cpu_at = perf_counter(), process_time()
        effects = engine.step(step * STEP_MS, changes)
        wall, cpu = wall + perf_counter() - started_at, cpu + process_time() - cpu_at
        answers = []
        for effect in effects:
            if isinstance(effect, BindClaims):
                answers.append(ClaimsBound(effect.pod, effect.attempt))
                results = [one for part in effect.claims if part.allocation for one in part.allocation.devices.results]
                given.update((one.pool, one.device) for one in results)
            elif isinstance(effect, Bind):
                bound += 1
                answers.append(BindDone(effect.pod, effect.attempt))
    return {
        "pods": count,
        "placed": bound,
        "devices": len(given),
        "pods_per_s": round(count / wall),
        "pods_per_cpu_s": round(count / cpu),
        "rss_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
    }


def run(nodes: int, pods: int, peer_pods: int, folder: Path) -> str:
    command = [sys.executable, __file__, "measure", str(nodes), str(pods)]
    file = folder / "devices.json"
    write(nodes, peer_pods, file)
    runs: list[dict[str, float]] = []
    peers: list[dict[str, float]] = []
    for _ in range(RUNS):  # in turns: the machine's speed changes
        if ORACLE.exists():
            peers.append(measure([str(ORACLE), "-bench", str(file)]))
        runs.append(measure(command))
    ours, peer = best(runs), best(peers) if peers else {}
    if not ours["placed"] == ours["devices"] == pods:
        sys.exit(f"{ours['placed']} of {pods} pods were placed, with {ours['devices']} devices")
    row = [f"{nodes:,}"]
    for clock in ("pods_per_s", "pods_per_cpu_s"):
        theirs = peer.get(clock)
        row += (
            [f"{ours[clock]:,}", f"{theirs:,.0f}", f"{ours[clock] / theirs:,.0f}"]
            if theirs
            else [f"{ours[clock]:,}", "–", "–"]
        )
    return "| " + " | ".join((*row, f"{ours['rss_mb']:,} MB")) + " |"


def main() -> None:
    arguments = sys.argv[1:]
    if arguments[:1] == ["measure"] and len(arguments) == 3 and all(word.isdigit() for word in arguments[1:]):
        print(json.dumps(place(int(arguments[1]), int(arguments[2]))))
        return
    if arguments:
        sys.exit("usage: devices.py [measure NODES PODS]")
    print(f"machine: {machine()}\nbest of {RUNS} runs; {DEVICES} devices a node, one claim a pod\n")
    print("| nodes | pods/s | kube-scheduler | times | pods a CPU second | kube-scheduler | times | memory |")
    print("|---|---|---|---|---|---|---|---|", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        for case in CASES:
            print(run(*case, Path(folder)), flush=True)


if __name__ == "__main__":
    main()
