"""Workloads to time placing with: `python bench/workloads.py KIND NODES PODS [BOUND] > workload.json`.

The shapes are those of Kubernetes' scheduler_perf: `basic` (one template), `spread` (over zones), `anti` (one a host),
`prefaff` (near their like), `prefnode` (on ssd), `mixed` (those five in turn), `labelled` (basic, but each pod has a
label of its own, as those of a StatefulSet have) and `distinct`, where every pod has its
own requests, labels, tolerations and affinity, so that no answer can be shared. The same arguments give the same bytes.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Callable, Iterator
from typing import Any

HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
ZONES = 3
DISKS = ("ssd", "hdd")
SEED = 7

Object = dict[str, Any]


def node(at: int) -> Object:
    name = f"node-{at}"
    room = {"cpu": "32", "memory": "128Gi", "pods": "110"}
    labels = {HOST: name, ZONE: f"zone-{at % ZONES}", "disktype": DISKS[at % len(DISKS)]}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": {},
        "status": {"capacity": room, "allocatable": room, "conditions": [{"type": "Ready", "status": "True"}]},
    }


def pod(name: str, cpu: str = "100m", memory: str = "500Mi", **labels: str) -> Object:
    container = {
        "name": "c",
        "image": "registry.k8s.io/pause:3.10",
        "resources": {"requests": {"cpu": cpu, "memory": memory}},
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "uid": name, "labels": labels or {"color": "blue"}},
        "spec": {"schedulerName": "default-scheduler", "containers": [container]},
        "status": {},
    }


def _selects(**labels: str) -> Object:
    return {"labelSelector": {"matchLabels": labels}}


def basic(at: int) -> Object:
    return pod(f"basic-{at}")


def labelled(at: int) -> Object:
    return pod(f"labelled-{at}", color="blue", index=str(at))


def spread(at: int) -> Object:
    made = pod(f"spread-{at}")
    rule = {"maxSkew": 5, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule", **_selects(color="blue")}
    made["spec"]["topologySpreadConstraints"] = [rule]
    return made


def anti(at: int) -> Object:
    made = pod(f"anti-{at}", color="green")
    term = {**_selects(color="green"), "topologyKey": HOST}
    made["spec"]["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    return made


def prefaff(at: int) -> Object:
    made = pod(f"prefaff-{at}", color="red")
    term = {"weight": 1, "podAffinityTerm": {**_selects(color="red"), "topologyKey": HOST}}
    made["spec"]["affinity"] = {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [term]}}
    return made


def prefnode(at: int) -> Object:
    made = pod(f"prefnode-{at}")
    on_ssd = {"matchExpressions": [{"key": "disktype", "operator": "In", "values": ["ssd"]}]}
    term = {"weight": 50, "preference": on_ssd}
    made["spec"]["affinity"] = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [term]}}
    return made


def distinct_pods() -> Callable[[int], Object]:
    """Every pod its own class, drawn from a fixed seed."""
    dice = random.Random(SEED)

    def distinct(at: int) -> Object:
        cpu, memory = f"{dice.randint(50, 2000)}m", f"{dice.randint(64, 4096)}Mi"
        app = f"a{dice.randint(0, 400)}"
        made = pod(f"d-{at}", cpu, memory, app=app, v=str(at))
        spec = made["spec"]
        if dice.random() < 0.3:
            spec["tolerations"] = [{"key": f"k{dice.randint(0, 9)}", "operator": "Exists"}]
        if dice.random() < 0.3:
            spec["nodeSelector"] = {"disktype": dice.choice(DISKS)}
        if dice.random() < 0.3:
            weight = dice.randint(1, 100)
            term = {**_selects(app=app), "topologyKey": dice.choice((HOST, ZONE))}
            preferred = [{"weight": weight, "podAffinityTerm": term}]
            spec["affinity"] = {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}
        if dice.random() < 0.2:
            rule = {"maxSkew": 2, "topologyKey": ZONE, "whenUnsatisfiable": "ScheduleAnyway", **_selects(app=app)}
            spec["topologySpreadConstraints"] = [rule]
        return made

    return distinct


MIXED = (basic, spread, anti, prefaff, prefnode)
TEMPLATES: dict[str, Callable[[int], Object]] = {template.__name__: template for template in (*MIXED, labelled)}
KINDS = (*TEMPLATES, "mixed", "distinct")


def pending(kind: str, count: int) -> Iterator[Object]:
    if kind == "mixed":
        return (MIXED[at % len(MIXED)](at) for at in range(count))
    make = distinct_pods() if kind == "distinct" else TEMPLATES[kind]
    return (make(at) for at in range(count))


def bound(count: int, nodes: int) -> Iterator[Object]:
    for at in range(count):
        made = pod(f"b-{at}")
        made["spec"]["nodeName"] = f"node-{at % nodes}"
        yield made


def write(kind: str, nodes: int, pods: int, already_bound: int = 0, file: Any = sys.stdout) -> None:
    """One JSON object, written item by item: a million pods need not be in memory at once."""
    parts = {
        "nodes": (node(at) for at in range(nodes)),
        "bound": bound(already_bound, nodes),
        "pending": pending(kind, pods),
    }
    file.write("{")
    for place, (name, items) in enumerate(parts.items()):
        file.write(f'{", " if place else ""}"{name}": [')
        for at, item in enumerate(items):
            file.write((", " if at else "") + json.dumps(item))
        file.write("]")
    file.write("}")


def main() -> None:
    arguments = sys.argv[1:]
    if len(arguments) not in (3, 4) or arguments[0] not in KINDS or not all(word.isdigit() for word in arguments[1:]):
        sys.exit(f"usage: workloads.py {{{','.join(KINDS)}}} NODES PODS [BOUND]")
    write(arguments[0], *(int(word) for word in arguments[1:]))


if __name__ == "__main__":
    main()
