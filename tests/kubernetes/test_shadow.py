"""Decisions on a live cluster: kube-scheduler binds random pods, and situate looks on and would have done the same."""

import random
import ssl
import urllib.request
from functools import partial
from typing import Any

import msgspec

from kubernetes.cluster import Cluster
from kubernetes.objects import Json, node, pod, priority_class
from kubernetes.parts import wait_until
from situate.kube.shadow import WINDOW

NODES = 40
ALL_NODES = {"percentageOfNodesToScore": 100}
ZONE = "topology.kubernetes.io/zone"


def random_node(dice: random.Random, at: int) -> Json:
    labels = {ZONE: f"zone-{at % 3}", "disk": dice.choice(["ssd", "hdd"])}
    taints = []
    if dice.random() < 0.2:
        effect = dice.choice(["NoSchedule", "PreferNoSchedule"])
        taints = [{"key": "dedicated", "value": "batch", "effect": effect}]
    return node(f"node-{at}", cpu=dice.choice(["8", "16", "32"]), memory="64Gi", labels=labels, taints=taints)


def random_pod(dice: random.Random, at: int) -> Json:
    """Asks for room, and perhaps for labels, tolerations, neighbours, or none, and evenly over zones."""
    app = dice.choice(["web", "db", "cache"])
    spec: dict[str, Any] = {}
    affinity: dict[str, Any] = {}
    selects = {"matchLabels": {"app": app}}
    if dice.random() < 0.15:
        spec["nodeSelector"] = {"disk": dice.choice(["ssd", "hdd"])}
    if dice.random() < 0.2:
        spec["tolerations"] = [{"key": "dedicated", "operator": "Exists"}]
    if dice.random() < 0.25:
        unsatisfiable = dice.choice(["DoNotSchedule", "ScheduleAnyway"])
        spec["topologySpreadConstraints"] = [
            {"maxSkew": 2, "topologyKey": ZONE, "whenUnsatisfiable": unsatisfiable, "labelSelector": selects}
        ]
    if dice.random() < 0.2:
        term = {"topologyKey": ZONE, "labelSelector": selects}
        kind = dice.choice(["podAffinity", "podAntiAffinity"])
        affinity[kind] = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 10, "podAffinityTerm": term}]}
    if dice.random() < 0.2:
        wants = {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]}
        affinity["nodeAffinity"] = {
            "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 5, "preference": wants}]
        }
    if affinity:
        spec["affinity"] = affinity
    cpu, memory = f"{dice.choice([50, 100, 250, 400])}m", f"{dice.choice([64, 256, 700])}Mi"
    priority = dice.choice(["low", "high"])
    return pod(f"pod-{at}", cpu=cpu, memory=memory, labels={"app": app}, priorityClassName=priority, **spec)


def shown(cluster: Cluster, url: str) -> dict[str, Any]:
    tls = ssl.create_default_context()
    tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE
    asked = urllib.request.Request(f"{url}/shadow", headers={"Authorization": f"Bearer {cluster.tokens['admin']}"})
    with urllib.request.urlopen(asked, context=tls) as answer:
        return msgspec.json.decode(answer.read(), type=dict[str, Any])


def is_bound(cluster: Cluster, name: str) -> bool:
    found = cluster.pod(name)
    return found is not None and bool(found["spec"].get("nodeName"))


def look_on(cluster: Cluster, seed: int, pods: int, at_once: int) -> dict[str, Any]:
    """What a shadow of kube-scheduler says in the end. Some at once: all are bound before the next are created, because
    the more binds are under way on a busy machine, the more orders of them there are, and the shadow tries but some."""
    dice = random.Random(seed)
    cluster.create(priority_class("low", 1), priority_class("high", 100))
    cluster.create(*(random_node(dice, at) for at in range(NODES)))
    shadow = cluster.situate(ALL_NODES, flags=["--shadow", "--shadow-json"])
    cluster.kube_scheduler(ALL_NODES)
    for begin in range(0, pods, at_once):
        cluster.create(*(random_pod(dice, at) for at in range(begin, begin + at_once)))
        for at in range(begin, begin + at_once):
            wait_until(partial(is_bound, cluster, f"pod-{at}"), "the pod to be bound")
    wait_until(lambda: len(cluster.bound()) == pods, "all pods to be bound", within_s=120)
    # What is in doubt is settled when it stops: up to a window of it.
    wait_until(lambda: shown(cluster, shadow.url)["compared"] >= pods - WINDOW, "all binds to be seen")
    assert shadow.stop() == 0
    (line,) = (line for line in shadow.said().splitlines() if line.startswith('{"compared"'))
    return msgspec.json.decode(line.encode(), type=dict[str, Any])


def test_kube_scheduler_chooses_from_our_best_nodes(cluster: Cluster) -> None:
    said = look_on(cluster, seed=36, pods=500, at_once=10)
    assert (said["compared"], said["differences"]) == (500, [])
    assert said["agreed"] > 400


def test_when_pods_come_one_at_a_time_no_order_is_needed_to_explain_a_choice(cluster: Cluster) -> None:
    said = look_on(cluster, seed=37, pods=100, at_once=1)
    assert (said["compared"], said["agreed"], said["differences"]) == (100, 100, [])
