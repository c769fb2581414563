"""Makes clusters at random for the oracle to answer about: `generate.py FAMILY COUNT SEED [--wide] > OUT`.

Plain, it draws from the same shapes and values as the conformance families. With --wide it also draws what those
never hold: rarer operators, half-set fields, odd quantities, more kinds of volumes and owners, any configuration.
It must stay pure standard library, and give the same lines for the same arguments for ever.
"""

import argparse
import json
import random
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias, TypeVar

Json: TypeAlias = dict[str, Any]
T = TypeVar("T")

HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
REGION = "topology.kubernetes.io/region"
ARCH = "kubernetes.io/arch"
ZONES = ("z-a", "z-b", "z-c", "z-d")
APPS = ("web", "db", "cache", "batch", "etl")
TIERS = ("front", "back", "infra")
VERSIONS = ("1", "2", "3")
IMAGES = {
    "registry.example/app:v1": 83886080,
    "registry.example/db:v2": 419430400,
    "registry.example/cache:v3": 15728640,
    "registry.example/big:v9": 3145728000,
}
ABSENT_IMAGE = "registry.example/none:v0"
SHORT_IMAGES = ("nginx", "nginx:latest", "docker.io/library/nginx:latest", "busybox:1.36", "registry.example:5000/tool")
DIGEST = "@sha256:" + "ab" * 32
TAINT_KEYS = ("dedicated", "flaky", "spot", "node.kubernetes.io/not-ready")
UNSCHEDULABLE = "node.kubernetes.io/unschedulable"
TAINT_VALUES = ("gpu", "db", "true")
EFFECTS = ("NoSchedule", "PreferNoSchedule", "PreferNoSchedule", "NoExecute")
CPUS = ("10m", "100m", "0.1", "250m", "300m", "500m", "1", "1500m", "2")
MEMORIES = ("16Mi", "64Mi", "1e8", "128Mi", "256Mi", "500M", "512Mi", "700Mi", "1Gi", "2Gi")
ODD_CPUS = ("0", "1m", "100u", "1.5", "2500u", "5e-1", "0.25", "7")
ODD_MEMORIES = ("0", "1", "100m", "1.5Gi", "123456789", "1000k", "0.5Gi", "1e9", "1Mi", "1500000Ki")
GPU, FOO, HUGE = "nvidia.com/gpu", "example.com/foo", "hugepages-2Mi"
DRIVER, CAPACITY_DRIVER = "csi.example.com", "csi.capacity.example.com"
CONFIG_VERSION = "kubescheduler.config.k8s.io/v1"

# How often a pending pod has each feature when its family is about that feature; and how often a bound pod has it.
PENDING_RATES = {
    "tolerations": 0.75,
    "nodeSelector": 0.28,
    "nodeRequired": 0.28,
    "nodePreferred": 0.44,
    "affinityRequired": 0.20,
    "affinityPreferred": 0.38,
    "antiRequired": 0.28,
    "antiPreferred": 0.37,
    "spread": 0.72,
    "ports": 0.45,
    "volumes": 0.52,
}
BOUND_RATES = {
    "tolerations": 0.25,
    "nodeSelector": 0.09,
    "nodeRequired": 0.105,
    "nodePreferred": 0.145,
    "affinityRequired": 0.05,
    "affinityPreferred": 0.14,
    "antiRequired": 0.065,
    "antiPreferred": 0.13,
    "spread": 0.26,
    "ports": 0.14,
    "volumes": 0.13,
}
NODE_AFFINITY = ("nodeSelector", "nodeRequired", "nodePreferred")
POD_AFFINITY = ("affinityRequired", "affinityPreferred", "antiRequired", "antiPreferred")
EVERYTHING_BUT_VOLUMES = ("tolerations", *NODE_AFFINITY, *POD_AFFINITY, "spread", "ports")
# Family -> (the features it is about, how much of the rate above its pending pods get).
FAMILIES: dict[str, tuple[tuple[str, ...], float]] = {
    "resources": ((), 1.0),
    "taints": (("tolerations",), 1.0),
    "nodeaffinity": (NODE_AFFINITY, 1.0),
    "ports": (("ports",), 1.0),
    "images": ((), 1.0),
    "interpod": (POD_AFFINITY, 1.0),
    "spread": (("spread",), 1.0),
    "defaultspread": (("tolerations",), 0.45),
    "volumes": (("volumes",), 1.0),
    "preempt": (EVERYTHING_BUT_VOLUMES, 0.22),
    "config": (("tolerations", *NODE_AFFINITY, *POD_AFFINITY, "spread"), 0.5),
    "mixed": ((*EVERYTHING_BUT_VOLUMES, "volumes"), 0.5),
    "sequence": (EVERYTHING_BUT_VOLUMES, 0.5),
}
WIDE_RATE = 0.12  # what the other features get in wide mode, so that they meet


class Dice(random.Random):
    """Randomness, and how far to reach: `wide` is whether rarer things may come."""

    wide: bool = False

    def chance(self, probability: float) -> bool:
        return self.random() < probability

    def rarely(self, probability: float) -> bool:
        """A chance that only wide mode has."""
        return self.wide and self.random() < probability

    def some(self, items: Sequence[T], least: int, most: int) -> list[T]:
        return self.sample(items, min(len(items), self.randint(least, most)))


# --- nodes ---


def node(dice: Dice, index: int, zones: Sequence[str], taint_rate: float, preempt: bool) -> Json:
    name = f"n{index}"
    capacity = node_capacity(dice)
    allocatable = dict(capacity)
    if preempt:
        allocatable |= {
            "cpu": dice.choice(("2", "4")),
            "memory": dice.choice(("4Gi", "8Gi")),
            "pods": dice.choice(("6", "12", "110")),
        }
    status: Json = {"capacity": capacity, "allocatable": allocatable, "images": node_images(dice)}
    if dice.rarely(0.04):
        del status["allocatable"]
    if dice.rarely(0.05):
        allocatable.pop(dice.choice(list(allocatable)))
    if dice.rarely(0.2):
        status["declaredFeatures"] = dice.some(
            ("RestartAllContainersOnContainerExits", "UserNamespacesHostNetwork"), 1, 2
        )
    status["conditions"] = [{"type": "Ready", "status": "True" if not dice.rarely(0.1) else "False"}]
    labels = node_labels(dice, name, zones)
    spec = node_spec(dice, taint_rate)
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": spec,
        "status": status,
    }


def node_capacity(dice: Dice) -> Json:
    cpus = dice.choice((1, 2, 4, 8, 16, 64))
    gibibytes = cpus * dice.choice((1, 2, 4, 8))
    cpu = str(cpus) if dice.chance(0.5) else f"{cpus * 1000 - dice.choice((0, 60, 130))}m"
    memory = dice.choice((str(gibibytes << 30), f"{gibibytes << 20}Ki", f"{gibibytes << 10}Mi"))
    if dice.rarely(0.1):
        cpu, memory = dice.choice((("0", memory), (cpu, "0"), ("3.3", "7.5Gi"), ("1999m", "123456789012")))
    capacity = {
        "cpu": cpu,
        "memory": memory,
        "pods": dice.choice(("3", "8", "20", "110")),
        "ephemeral-storage": dice.choice(("10Gi", "50Gi", "100Gi")),
    }
    if dice.chance(0.3):
        capacity[GPU] = dice.choice(("1", "2", "4", "8"))
    if dice.chance(0.1):
        capacity[FOO] = str(dice.randint(0, 5))
    if dice.chance(0.1):
        capacity[HUGE] = "512Mi"
    if dice.rarely(0.1):
        capacity["hugepages-1Gi"] = "4Gi"
    return capacity


def node_images(dice: Dice) -> list[Json]:
    names = dice.some(list(IMAGES), 0, 4)
    images: list[Json] = [{"names": [name, name + DIGEST], "sizeBytes": IMAGES[name]} for name in names]
    if dice.rarely(0.4):
        for name in dice.some(SHORT_IMAGES, 1, 3):
            images.append({"names": [name], "sizeBytes": dice.choice((1, 23 << 20, 150 << 20, 900 << 20, 5 << 30))})
    if dice.rarely(0.1) and names:
        images.append({"names": [names[0]], "sizeBytes": 777 << 20})
    return images


def node_labels(dice: Dice, name: str, zones: Sequence[str]) -> dict[str, str]:
    labels = {HOSTNAME: name}
    if dice.rarely(0.05):
        labels = {}
    if dice.chance(0.9):
        labels[ZONE] = dice.choice(zones)
    if dice.chance(0.9):
        labels[REGION] = dice.choice(("r-1", "r-1", "r-2"))
    if dice.chance(0.6):
        labels["disktype"] = dice.choice(("ssd", "hdd", "nvme"))
    if dice.chance(0.5):
        labels["gen"] = str(dice.randint(1, 9))
    if dice.chance(0.3):
        labels["dedicated"] = dice.choice(("gpu", "db", ""))
    if dice.chance(0.5):
        labels[ARCH] = dice.choice(("amd64", "arm64"))
    if dice.rarely(0.1):
        labels["gen"] = dice.choice(("x", "", "007", "99999999999999999999"))
    if dice.rarely(0.1):
        labels["failure-domain.beta.kubernetes.io/zone"] = dice.choice(ZONES)
    return labels


def node_spec(dice: Dice, taint_rate: float) -> Json:
    taints: list[Json] = []
    spec: Json = {}
    if dice.chance(0.055):
        spec["unschedulable"] = True
        if not dice.rarely(0.2):
            taints.append({"key": UNSCHEDULABLE, "effect": "NoSchedule"})
    if dice.chance(taint_rate):
        for key in dice.some(TAINT_KEYS, 1, 3):
            taint = {"key": key}
            if dice.chance(0.7):
                taint["value"] = dice.choice(TAINT_VALUES) if not dice.rarely(0.2) else dice.choice(("5", "10", ""))
            taints.append(taint | {"effect": dice.choice(EFFECTS)})
        if dice.rarely(0.2):
            taints.append({"key": taints[-1]["key"], "effect": "NoExecute"})
    if taints:
        spec["taints"] = taints
    return spec


# --- what a pod asks of its node ---


def tolerations(dice: Dice) -> list[Json]:
    return [toleration(dice) for _ in range(dice.randint(1, 3))]


def toleration(dice: Dice) -> Json:
    keys = (*TAINT_KEYS, UNSCHEDULABLE)
    if dice.rarely(0.08):
        return {"key": dice.choice(keys), "operator": dice.choice(("Gt", "Lt")), "value": dice.choice(("3", "7", "12"))}
    made: Json = {}
    if dice.chance(0.44):
        if dice.chance(0.76):
            made["key"] = dice.choice(keys)
        made["operator"] = "Exists"
    else:
        made |= {"key": dice.choice(keys), "operator": "Equal", "value": dice.choice((*TAINT_VALUES, ""))}
        if dice.rarely(0.3):
            del made["operator"]
        if dice.rarely(0.1):
            made.pop("value")
    if dice.chance(0.6):
        made["effect"] = dice.choice(("NoSchedule", "PreferNoSchedule", "NoExecute"))
        if made["effect"] == "NoExecute" and dice.chance(0.5):
            made["tolerationSeconds"] = 300
    return made


def node_selector(dice: Dice) -> dict[str, str]:
    made = {}
    if dice.chance(0.7):
        made["disktype"] = dice.choice(("ssd", "hdd"))
    if dice.chance(0.25):
        made[ARCH] = "amd64"
    if dice.chance(0.25) or not made:
        made[ZONE] = dice.choice(ZONES)
    return made


def node_requirement(dice: Dice, nodes: int) -> Json:
    values: dict[str, Sequence[str]] = {
        ZONE: ZONES,
        HOSTNAME: [f"n{i}" for i in range(nodes)],
        "disktype": ("ssd", "hdd", "nvme"),
        "dedicated": ("gpu", "db") if not dice.wide else ("gpu", "db", ""),
        ARCH: ("amd64", "arm64"),
        "gen": [str(i) for i in range(1, 10)],
    }
    key = dice.choice(list(values))
    operators = ["In", "NotIn", "Exists", "DoesNotExist"]
    if key == "gen":
        operators += ["Gt", "Lt"]
    operator = dice.choice(operators)
    if operator in ("Gt", "Lt"):
        chosen = [dice.choice(values[key])] if not dice.rarely(0.2) else [dice.choice(("0", "100", "03", "12"))]
        return {"key": key, "operator": operator, "values": chosen}
    if operator in ("Exists", "DoesNotExist"):
        return {"key": key, "operator": operator}
    return {"key": key, "operator": operator, "values": dice.some(values[key], 1, 3)}


def node_term(dice: Dice, nodes: int) -> Json:
    if dice.rarely(0.06):
        return dice.choice(({}, {"matchExpressions": []}, {"matchFields": []}))
    made: Json = {"matchExpressions": [node_requirement(dice, nodes) for _ in range(dice.choice((1, 1, 2)))]}
    if dice.chance(0.09):
        made["matchFields"] = [node_field(dice, nodes)]
    if dice.rarely(0.1):
        made["matchFields"] = [node_field(dice, nodes) for _ in range(dice.randint(1, 2))]
        if dice.chance(0.5):
            del made["matchExpressions"]
    return made


def node_field(dice: Dice, nodes: int) -> Json:
    name = f"n{dice.randrange(nodes)}"
    return {"key": "metadata.name", "operator": dice.choice(("In", "NotIn")), "values": [name]}


def pinned(dice: Dice, names: Sequence[str]) -> Json:
    field = {"key": "metadata.name", "operator": "In", "values": [dice.choice(names)]}
    return {"nodeSelectorTerms": [{"matchFields": [field]}]}


def node_affinity(dice: Dice, nodes: int, wants: Callable[[str], bool]) -> Json:
    made: Json = {}
    if wants("nodeRequired"):
        terms = [node_term(dice, nodes) for _ in range(dice.choice((1, 1, 2)))]
        made["requiredDuringSchedulingIgnoredDuringExecution"] = {"nodeSelectorTerms": terms}
    if wants("nodePreferred"):
        made["preferredDuringSchedulingIgnoredDuringExecution"] = [
            {"weight": dice.randint(1, 100), "preference": node_term(dice, nodes)} for _ in range(dice.randint(1, 3))
        ]
    return made


# --- what a pod asks of other pods ---


def label_selector(dice: Dice) -> Json | None:
    if dice.rarely(0.08):
        return dice.choice((None, {}, {"matchLabels": {}}))
    made: Json = {}
    if dice.chance(0.68):
        made["matchLabels"] = {"app": dice.choice(APPS)}
    if dice.chance(0.3) or not made:
        made["matchExpressions"] = [label_requirement(dice)]
    if dice.rarely(0.1):
        made["matchLabels"] = {"app": dice.choice(APPS), "tier": dice.choice(TIERS)}
    return made


def label_requirement(dice: Dice) -> Json:
    key, values = dice.choice((("app", APPS), ("tier", TIERS), ("ver", VERSIONS)))
    operator = dice.choice(("In", "NotIn", "Exists", "DoesNotExist"))
    if operator in ("Exists", "DoesNotExist"):
        return {"key": key, "operator": operator}
    return {"key": key, "operator": operator, "values": dice.some(values, 1, 2)}


def pod_term(dice: Dice, labels: dict[str, str]) -> Json:
    keys = (HOSTNAME, HOSTNAME, ZONE, REGION, "disktype")
    made: Json = {"labelSelector": label_selector(dice), "topologyKey": dice.choice(keys)}
    if dice.chance(0.16):
        made["namespaces"] = dice.some(("default", "prod", "dev"), 1, 2)
    if dice.chance(0.12):
        made["namespaceSelector"] = dice.choice(({}, {"matchLabels": {"env": "prod"}}))
        if dice.rarely(0.3):
            expression = {"key": "env", "operator": dice.choice(("Exists", "DoesNotExist"))}
            made["namespaceSelector"] = {"matchExpressions": [expression]}
    if dice.rarely(0.05):
        made["namespaceSelector"] = None
    if dice.chance(0.1):
        merge_label_key(made, "matchLabelKeys", "ver", "In", labels)
    if dice.rarely(0.1):
        merge_label_key(made, "mismatchLabelKeys", "tier", "NotIn", labels)
    return made


def merge_label_key(term: Json, field: str, key: str, operator: str, labels: dict[str, str]) -> None:
    """Do what the API server does to (mis)matchLabelKeys when a pod is made: write them into the selector."""
    if term["labelSelector"] is None:
        return
    term[field] = [key]
    if key in labels:
        expression = {"key": key, "operator": operator, "values": [labels[key]]}
        term["labelSelector"].setdefault("matchExpressions", []).append(expression)


def pod_affinity(dice: Dice, labels: dict[str, str], required: bool, preferred: bool) -> Json:
    made: Json = {}
    if required:
        terms = [pod_term(dice, labels) for _ in range(dice.choice((1, 1, 2)))]
        made["requiredDuringSchedulingIgnoredDuringExecution"] = terms
    if preferred:
        made["preferredDuringSchedulingIgnoredDuringExecution"] = [
            {"weight": dice.randint(1, 100), "podAffinityTerm": pod_term(dice, labels)}
            for _ in range(dice.randint(1, 2))
        ]
    return made


def spread_constraint(dice: Dice) -> Json:
    made: Json = {
        "maxSkew": dice.randint(1, 4),
        "topologyKey": dice.choice((ZONE, HOSTNAME, REGION, "disktype")),
        "whenUnsatisfiable": dice.choice(("DoNotSchedule", "ScheduleAnyway")),
        "labelSelector": label_selector(dice),
    }
    if made["whenUnsatisfiable"] == "DoNotSchedule" and dice.chance(0.28):
        made["minDomains"] = dice.randint(1, 5)
    if dice.chance(0.2):
        made["nodeAffinityPolicy"] = dice.choice(("Honor", "Ignore"))
    if dice.chance(0.2):
        made["nodeTaintsPolicy"] = dice.choice(("Honor", "Ignore"))
    if dice.chance(0.12) and made["labelSelector"] is not None:
        made["matchLabelKeys"] = ["ver"] if not dice.rarely(0.3) else dice.some(("ver", "tier"), 1, 2)
    return made


def spread_constraints(dice: Dice) -> list[Json]:
    made: dict[tuple[str, str], Json] = {}
    for _ in range(dice.randint(1, 2) if not dice.rarely(0.2) else 4):
        constraint = spread_constraint(dice)
        made.setdefault((constraint["topologyKey"], constraint["whenUnsatisfiable"]), constraint)
    return list(made.values())


# --- pods ---


def requests(dice: Dice) -> Json:
    made: Json = {}
    if dice.chance(0.86):
        made["cpu"] = dice.choice(CPUS) if not dice.rarely(0.15) else dice.choice(ODD_CPUS)
    if dice.chance(0.86):
        made["memory"] = dice.choice(MEMORIES) if not dice.rarely(0.15) else dice.choice(ODD_MEMORIES)
    if dice.chance(0.15):
        made["ephemeral-storage"] = dice.choice(("1Gi", "5Gi", "20Gi"))
    if dice.chance(0.08):
        made[GPU] = dice.choice(("1", "2", "4"))
    if dice.chance(0.04):
        made[FOO] = dice.choice(("1", "2")) if not dice.rarely(0.2) else "0"
    if dice.chance(0.03):
        made[HUGE] = "128Mi"
    if dice.rarely(0.02):
        made["hugepages-1Gi"] = "1Gi"
    return made


def resources(dice: Dice) -> Json:
    asked = requests(dice)
    made: Json = {"requests": asked}
    if dice.chance(0.4):
        made["limits"] = dict(asked)
    if dice.rarely(0.1):
        made.pop(dice.choice(list(made)))
    if dice.rarely(0.05) and "limits" in made and "requests" in made:
        for name in dice.some(list(asked), 0, 2):
            del asked[name]
    return made


def host_port(dice: Dice) -> Json:
    made: Json = {"containerPort": 80, "hostPort": dice.choice((80, 443, 8080))}
    if dice.chance(0.52):
        made["protocol"] = dice.choice(("TCP", "UDP")) if not dice.rarely(0.2) else "SCTP"
    if dice.chance(0.42):
        made["hostIP"] = dice.choice(("0.0.0.0", "127.0.0.1", "10.0.0.1")) if not dice.rarely(0.1) else "::"
    if dice.rarely(0.1):
        made = {"containerPort": dice.choice((80, 443))}
    return made


def image(dice: Dice) -> str:
    if dice.rarely(0.2):
        return dice.choice(SHORT_IMAGES)
    return dice.choice((*IMAGES, ABSENT_IMAGE))


def containers(dice: Dice, ports: bool) -> list[Json]:
    count = dice.choice((1, 1, 1, 2, 3))
    made: list[Json] = [{"name": f"c{i}", "image": image(dice), "resources": resources(dice)} for i in range(count)]
    for container in made if ports else []:
        many = 1 if not dice.rarely(0.3) else dice.randint(0, 3)
        container["ports"] = [host_port(dice) for _ in range(many)]
    if dice.rarely(0.01):
        made[0]["restartPolicy"] = "Never"
        exits = {"operator": "In", "values": [42]}
        made[0]["restartPolicyRules"] = [{"action": "RestartAllContainers", "exitCodes": exits}]
    return made


def init_containers(dice: Dice) -> list[Json]:
    made = []
    for index in range(dice.randint(1, 3)):
        container: Json = {"name": f"i{index}", "image": "registry.example/app:v1", "resources": resources(dice)}
        if dice.rarely(0.3):
            container["image"] = image(dice)
        if dice.chance(0.4):
            container["restartPolicy"] = "Always"
        if dice.rarely(0.1):
            container["ports"] = [host_port(dice)]
        made.append(container)
    return made


def pod_labels(dice: Dice) -> dict[str, str]:
    made = {"app": dice.choice(APPS)}
    if dice.chance(0.7):
        made["tier"] = dice.choice(TIERS)
    if dice.chance(0.3):
        made["ver"] = dice.choice(VERSIONS)
    return made if not dice.rarely(0.03) else {}


def pod(dice: Dice, name: str, nodes: int, rates: dict[str, float], claims: dict[str, list[str]]) -> Json:
    def wants(feature: str) -> bool:
        return dice.chance(rates.get(feature, 0.0))

    labels = pod_labels(dice)
    namespace = dice.choice(("default", "default", "prod", "dev")) if not dice.rarely(0.02) else "ghost"
    spec: Json = {"containers": containers(dice, wants("ports"))}
    if dice.chance(0.15):
        spec["initContainers"] = init_containers(dice)
    spec["schedulerName"] = "default-scheduler"
    if wants("tolerations"):
        spec["tolerations"] = tolerations(dice)
    if wants("nodeSelector"):
        spec["nodeSelector"] = node_selector(dice)
    affinity = {
        "nodeAffinity": node_affinity(dice, nodes, wants),
        "podAffinity": pod_affinity(dice, labels, wants("affinityRequired"), wants("affinityPreferred")),
        "podAntiAffinity": pod_affinity(dice, labels, wants("antiRequired"), wants("antiPreferred")),
    }
    if any(affinity.values()):
        spec["affinity"] = {kind: terms for kind, terms in affinity.items() if terms}
    if wants("spread"):
        spec["topologySpreadConstraints"] = spread_constraints(dice)
    if dice.chance(0.06):
        spec["overhead"] = {"cpu": "50m", "memory": "20Mi"} if not dice.rarely(0.3) else {FOO: "1", "memory": "1Gi"}
    if dice.chance(0.05):
        spec["resources"] = {"requests": {"cpu": "2", "memory": "1Gi"}} if not dice.rarely(0.5) else pod_resources(dice)
    if wants("volumes"):
        spec["volumes"] = volumes(dice, name, claims.get(namespace, []))
    if dice.rarely(0.05):
        spec["hostNetwork"] = True
        if dice.chance(0.3):
            spec["hostUsers"] = False
    metadata: Json = {"name": name, "namespace": namespace, "labels": labels, "uid": f"u-{name}"}
    metadata["creationTimestamp"] = "2026-01-01T00:00:00Z"
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": {}}


def pod_resources(dice: Dice) -> Json:
    return dice.choice(
        (
            {"limits": {"cpu": "3", "memory": "2Gi"}},
            {"requests": {"cpu": "100m"}},
            {"requests": {"memory": "3Gi"}, "limits": {"cpu": "4", "memory": "3Gi"}},
            {"limits": {HUGE: "256Mi", "memory": "1Gi"}},
        )
    )


def bound_pod(dice: Dice, index: int, nodes: int, rates: dict[str, float], claims: dict[str, list[str]]) -> Json:
    made = pod(dice, f"b{index}", nodes, rates, claims)
    if dice.chance(0.5):
        made["spec"]["priority"] = dice.choice((0, 0, 10, 100, 1000))
    if dice.chance(0.03):
        made["metadata"] |= {"deletionTimestamp": "2026-01-10T00:00:00Z", "deletionGracePeriodSeconds": 30}
    made["spec"]["nodeName"] = f"n{dice.randrange(nodes)}" if not dice.rarely(0.01) else "departed"
    started = f"2026-01-0{dice.randint(1, 9)}T0{dice.randint(0, 9)}:00:00Z"
    phase = "Running" if not dice.rarely(0.1) else dice.choice(("Pending", "Succeeded", "Failed"))
    made["status"] = {"phase": phase, "startTime": started}
    return made


# --- volumes ---


def volumes(dice: Dice, pod_name: str, claims: Sequence[str]) -> list[Json]:
    names = dice.some(claims, 0 if dice.chance(0.1) else 1, 2)
    made: list[Json] = [{"name": f"v{i}", "persistentVolumeClaim": {"claimName": c}} for i, c in enumerate(names)]
    if pod_name.startswith("p") and dice.chance(0.06):
        made.append({"name": "missing", "persistentVolumeClaim": {"claimName": "no-such-claim"}})
    if dice.chance(0.15) or not made:
        disk = {"pdName": dice.choice(("d1", "d2")), "readOnly": dice.chance(0.35)}
        made.append({"name": "gce", "gcePersistentDisk": disk})
    if dice.chance(0.15):
        made.append({"name": "aws", "awsElasticBlockStore": {"volumeID": dice.choice(("e1", "e2"))}})
    if dice.wide:
        made += [volume for volume in odd_volumes(dice, pod_name) if dice.chance(0.12)]
    return made


def odd_volumes(dice: Dice, pod_name: str) -> list[Json]:
    iscsi = {
        "targetPortal": "10.0.0.9:3260",
        "iqn": dice.choice(("iqn.a", "iqn.b")),
        "lun": 0,
        "readOnly": dice.chance(0.4),
    }
    monitors = dice.choice((["m1", "m2"], ["m2"], ["m3"]))
    rbd = {"monitors": monitors, "image": dice.choice(("i1", "i2")), "pool": "p", "readOnly": dice.chance(0.4)}
    template = {
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "wait",
            "resources": {"requests": {"storage": "1Gi"}},
        }
    }
    return [
        {"name": "iscsi", "iscsi": iscsi},
        {"name": "rbd", "rbd": rbd},
        {"name": "scratch", "ephemeral": {"volumeClaimTemplate": template}},
        {"name": "pack", "image": {"reference": image(dice), "pullPolicy": "IfNotPresent"}},
        {"name": "empty", "emptyDir": {}},
        {"name": "inline", "csi": {"driver": DRIVER}},
        {"name": "settings", "configMap": {"name": "settings"}},
    ]


def storage_class(name: str, provisioner: str, mode: str | None, topologies: list[Json] | None = None) -> Json:
    made: Json = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name},
        "provisioner": provisioner,
    }
    if mode:
        made["volumeBindingMode"] = mode
    if topologies:
        made["allowedTopologies"] = topologies
    return made


def storage_classes(dice: Dice) -> list[Json]:
    zones = [{"matchLabelExpressions": [{"key": ZONE, "values": dice.some(ZONES, 1, 2)}]}]
    made = [
        storage_class("wait", DRIVER, "WaitForFirstConsumer"),
        storage_class("wait-zone", DRIVER, "WaitForFirstConsumer", zones),
        storage_class("static", "kubernetes.io/no-provisioner", "WaitForFirstConsumer"),
        storage_class("now", DRIVER, "Immediate"),
    ]
    if dice.wide:
        made += [
            storage_class("unsaid", DRIVER, None),
            storage_class("local", "kubernetes.io/no-provisioner", "WaitForFirstConsumer"),
            storage_class("capacity", CAPACITY_DRIVER, "WaitForFirstConsumer"),
            storage_class("gce", "kubernetes.io/gce-pd", "WaitForFirstConsumer"),
        ]
    return made


def csi_nodes(dice: Dice, nodes: int) -> Iterator[Json]:
    for index in range(nodes):
        if not dice.chance(0.7):
            continue
        name = f"n{index}"
        drivers = [csi_node_driver(dice, DRIVER, name)]
        metadata: Json = {"name": name}
        if dice.wide:
            drivers += [
                csi_node_driver(dice, d, name) for d in (CAPACITY_DRIVER, "pd.csi.storage.gke.io") if dice.chance(0.4)
            ]
            if dice.chance(0.1):
                drivers.pop(0)
            if dice.chance(0.5):
                migrated = dice.choice(("kubernetes.io/gce-pd", "kubernetes.io/gce-pd,kubernetes.io/aws-ebs"))
                metadata["annotations"] = {"storage.alpha.kubernetes.io/migrated-plugins": migrated}
        yield {"apiVersion": "storage.k8s.io/v1", "kind": "CSINode", "metadata": metadata, "spec": {"drivers": drivers}}


def csi_node_driver(dice: Dice, driver: str, node_name: str) -> Json:
    made: Json = {"name": driver, "nodeID": node_name, "topologyKeys": [ZONE]}
    if not dice.rarely(0.15):
        made["allocatable"] = {"count": dice.choice((1, 2, 3, 25))}
    return made


def claim(index: int, namespace: str, mode: str, storage: str, storage_class_name: str | None) -> Json:
    spec: Json = {"accessModes": [mode], "resources": {"requests": {"storage": storage}}}
    if storage_class_name is not None:
        spec["storageClassName"] = storage_class_name
    metadata: Json = {"name": f"pvc{index}", "namespace": namespace, "uid": f"pvc-u{index}", "annotations": {}}
    status = {"phase": "Pending"}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec, "status": status}


def persistent_volume(dice: Dice, index: int, mode: str, storage_class_name: str) -> Json:
    labels: dict[str, str] = {}
    spec: Json = {
        "capacity": {"storage": "10Gi" if not dice.rarely(0.4) else dice.choice(("1Gi", "5Gi", "30Gi"))},
        "accessModes": [mode],
        "csi": {"driver": DRIVER, "volumeHandle": f"vol-{index}"},
    }
    if dice.chance(0.53):
        expression = {"key": ZONE, "operator": "In", "values": dice.some(ZONES, 1, 2)}
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}}
    elif dice.chance(0.4):
        labels[ZONE] = dice.choice((*ZONES, "z-a__z-b"))
    if dice.rarely(0.2):
        labels[dice.choice((REGION, "failure-domain.beta.kubernetes.io/zone"))] = dice.choice(
            ("r-1", "r-2", "z-a", "z-b")
        )
    spec["storageClassName"] = storage_class_name
    metadata: Json = {"name": f"pv{index}", "labels": labels}
    status = {"phase": "Available"}
    return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": metadata, "spec": spec, "status": status}


def bind(made_claim: Json, volume: Json) -> None:
    made_claim["metadata"]["annotations"]["pv.kubernetes.io/bind-completed"] = "yes"
    made_claim["spec"]["volumeName"] = volume["metadata"]["name"]
    made_claim["status"]["phase"] = volume["status"]["phase"] = "Bound"
    volume["spec"]["claimRef"] = {key: made_claim["metadata"][key] for key in ("namespace", "name", "uid")}
    volume["spec"]["claimRef"] |= {"kind": "PersistentVolumeClaim", "apiVersion": "v1"}


def claim_objects(dice: Dice, index: int, nodes: int) -> list[Json]:
    """One claim, and the volume it has or may get: the claim is last."""
    mode = dice.choice(("ReadWriteOnce", "ReadWriteOnce", "ReadWriteMany", "ReadWriteOncePod"))
    storage = dice.choice(("1Gi", "5Gi", "20Gi"))
    namespace = dice.choice(("default", "prod", "dev"))
    if dice.rarely(0.5):
        return odd_claim_objects(dice, index, nodes, claim(index, namespace, mode, storage, "now"))
    kind = dice.choice(("bound", "bound", "wait", "wait-zone", "static", "lost", "unbound"))
    if kind in ("wait", "wait-zone"):
        return [claim(index, namespace, mode, storage, kind)]
    made = claim(index, namespace, mode, storage, "static" if kind == "static" else "now")
    if kind == "bound":
        volume = persistent_volume(dice, index, mode, "now")
        bind(made, volume)
        return [volume, made]
    if kind == "static":
        return [persistent_volume(dice, index, mode, "static"), made]
    if kind == "lost":
        made["metadata"]["annotations"]["pv.kubernetes.io/bind-completed"] = "yes"
        made["spec"]["volumeName"] = f"gone{index}"
        made["status"]["phase"] = "Lost"
    return [made]


def odd_claim_objects(dice: Dice, index: int, nodes: int, made: Json) -> list[Json]:
    volume = persistent_volume(dice, index, made["spec"]["accessModes"][0], "now")
    match dice.choice(
        (
            "local",
            "local-bound",
            "prebound",
            "half",
            "class",
            "deleted",
            "gce",
            "picky",
            "capacity",
            "selected",
            "bound",
        )
    ):
        case "local" | "local-bound" as kind:
            expression = {"key": HOSTNAME, "operator": "In", "values": [f"n{dice.randrange(nodes)}"]}
            volume["spec"]["nodeAffinity"] = {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}}
            del volume["spec"]["csi"]
            volume["spec"]["local"] = {"path": "/mnt/disk"}
            volume["spec"]["storageClassName"] = made["spec"]["storageClassName"] = "local"
            if kind == "local-bound":
                bind(made, volume)
        case "prebound":
            volume["spec"]["storageClassName"] = made["spec"]["storageClassName"] = "static"
            volume["spec"]["claimRef"] = {"namespace": made["metadata"]["namespace"], "name": made["metadata"]["name"]}
        case "half":
            bind(made, volume)
            del made["metadata"]["annotations"]["pv.kubernetes.io/bind-completed"]
            made["status"]["phase"] = "Pending"
        case "class":
            made["spec"]["storageClassName"] = dice.choice(("", "no-such-class", "unsaid"))
            if dice.chance(0.3):
                del made["spec"]["storageClassName"]
            return [made]
        case "deleted":
            bind(made, volume)
            made["metadata"] |= {
                "deletionTimestamp": "2026-01-10T00:00:00Z",
                "finalizers": ["kubernetes.io/pvc-protection"],
            }
        case "gce":
            del volume["spec"]["csi"]
            volume["spec"]["gcePersistentDisk"] = {"pdName": f"disk-{index}"}
            volume["spec"]["storageClassName"] = made["spec"]["storageClassName"] = "gce"
            if dice.chance(0.7):
                bind(made, volume)
        case "picky":
            volume["spec"]["storageClassName"] = made["spec"]["storageClassName"] = "static"
            volume["metadata"]["labels"]["speed"] = dice.choice(("fast", "slow"))
            made["spec"]["selector"] = {"matchLabels": {"speed": "fast"}}
            if dice.chance(0.3):
                made["spec"]["volumeMode"] = "Block"
        case "capacity":
            made["spec"]["storageClassName"] = "capacity"
            return [made]
        case "selected":
            made["spec"]["storageClassName"] = "wait"
            made["metadata"]["annotations"]["volume.kubernetes.io/selected-node"] = f"n{dice.randrange(nodes)}"
            return [made]
        case _:
            bind(made, volume)
    return [volume, made]


def capacity_objects(dice: Dice, nodes: int) -> list[Json]:
    made: list[Json] = [
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "CSIDriver",
            "metadata": {"name": CAPACITY_DRIVER},
            "spec": {"storageCapacity": True},
        }
    ]
    if dice.chance(0.3):  # matters from Kubernetes 1.37 on
        required: Json = {"apiVersion": "storage.k8s.io/v1", "kind": "CSIDriver", "metadata": {"name": DRIVER}}
        made.append(required | {"spec": {"preventPodSchedulingIfMissing": dice.chance(0.8)}})
    for index, zone in enumerate(dice.some(ZONES, 0, 4)):
        capacity: Json = {"apiVersion": "storage.k8s.io/v1", "kind": "CSIStorageCapacity"}
        capacity["metadata"] = {"name": f"room{index}", "namespace": "default"}
        capacity |= {"storageClassName": "capacity", "nodeTopology": {"matchLabels": {ZONE: zone}}}
        capacity["capacity"] = dice.choice(("0", "2Gi", "6Gi", "100Gi"))
        if dice.chance(0.3):
            capacity["maximumVolumeSize"] = dice.choice(("1Gi", "10Gi"))
        made.append(capacity)
    for index in range(dice.randint(0, 3)):
        attached: Json = {"attacher": DRIVER, "nodeName": f"n{dice.randrange(nodes)}"}
        attached["source"] = {"persistentVolumeName": f"pv{dice.randint(0, 9)}"}
        metadata = {"name": f"attachment{index}"}
        made.append(
            {
                "apiVersion": "storage.k8s.io/v1",
                "kind": "VolumeAttachment",
                "metadata": metadata,
                "spec": attached,
                "status": {"attached": True},
            }
        )
    return made


def ephemeral_claims(dice: Dice, pods: Sequence[Json]) -> Iterator[Json]:
    """The claims that a controller makes for generic ephemeral volumes: most of them, and some that are another's."""
    for owner in pods:
        for volume in owner["spec"].get("volumes", []):
            if "ephemeral" not in volume or dice.chance(0.2):
                continue
            made = claim(0, owner["metadata"]["namespace"], "ReadWriteOnce", "1Gi", "wait")
            made["metadata"]["name"] = f"{owner['metadata']['name']}-{volume['name']}"
            made["metadata"]["uid"] = f"pvc-u-{owner['metadata']['name']}"
            if dice.chance(0.8):
                made["metadata"]["ownerReferences"] = [
                    owner_reference("v1", "Pod", owner["metadata"]["name"], owner["metadata"]["uid"])
                ]
            yield made


# --- what else a cluster has ---


def namespaces(dice: Dice) -> Iterator[Json]:
    for name, labels in (("default", {}), ("prod", {"env": "prod"}), ("dev", {"env": "dev"})):
        if not dice.rarely(0.03):
            yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}


def owner_reference(api_version: str, kind: str, name: str, uid: str) -> Json:
    return {"apiVersion": api_version, "kind": kind, "name": name, "uid": uid, "controller": True}


def services(dice: Dice) -> Iterator[Json]:
    for app in dice.some(APPS, 0, 4):
        selector: Json = {"app": app}
        if dice.rarely(0.2):
            selector = dice.choice(({}, {"tier": dice.choice(TIERS)}, {"app": app, "ver": "1"}))
        metadata = {"name": f"svc-{app}", "namespace": dice.choice(("default", "prod"))}
        spec = {"selector": selector, "ports": [{"port": 80}]}
        yield {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec}


def owners(dice: Dice, pods: Sequence[Json]) -> Iterator[Json]:
    """Controllers of some of the pods; the pods are told of them."""
    kinds = (("v1", "ReplicationController"), ("apps/v1", "ReplicaSet"), ("apps/v1", "StatefulSet"))
    for index in range(dice.randint(0, 4)):
        api_version, kind = dice.choice(kinds)
        labels = {"app": dice.choice(APPS)}
        name, namespace = f"owner{index}", dice.choice(("default", "prod", "dev"))
        selector: Json = labels if kind == "ReplicationController" else {"matchLabels": labels}
        if kind != "ReplicationController" and dice.chance(0.3):
            selector = label_selector(dice) or {"matchLabels": labels}
        template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c0", "image": ABSENT_IMAGE}]}}
        metadata = {"name": name, "namespace": namespace, "uid": f"u-{name}"}
        spec = {"replicas": 2, "selector": selector, "template": template}
        if dice.chance(0.9):
            yield {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec}
        for each in pods:
            alike = (
                each["metadata"]["namespace"] == namespace and each["metadata"]["labels"].get("app") == labels["app"]
            )
            if alike and dice.chance(0.7):
                each["metadata"]["ownerReferences"] = [owner_reference(api_version, kind, name, f"u-{name}")]


def disruption_budgets(dice: Dice) -> Iterator[Json]:
    for index in range(dice.randint(1, 3) if dice.chance(0.57) else 0):
        selector: Json | None = {"matchLabels": {"app": dice.choice(APPS)}}
        if dice.rarely(0.4):
            selector = label_selector(dice)
        status: Json = {
            "disruptionsAllowed": dice.choice((0, 0, 1, 2)),
            "currentHealthy": 3,
            "desiredHealthy": 2,
            "expectedPods": 3,
        }
        if dice.rarely(0.3):
            status["disruptedPods"] = {f"b{dice.randint(0, 30)}": "2026-01-10T00:00:00Z" for _ in range(3)}
        metadata = {"name": f"pdb{index}", "namespace": dice.choice(("default", "prod", "dev"))}
        spec = {"selector": selector}
        yield {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": metadata,
            "spec": spec,
            "status": status,
        }


# --- scheduler configuration ---

SCORERS = (
    "TaintToleration",
    "NodeAffinity",
    "PodTopologySpread",
    "InterPodAffinity",
    "NodeResourcesBalancedAllocation",
    "ImageLocality",
)


def plugin_args(name: str, fields: Json) -> Json:
    return {"name": name, "args": {"apiVersion": CONFIG_VERSION, "kind": name + "Args"} | fields}


def scoring_resources(dice: Dice) -> list[Json]:
    made = [{"name": name, "weight": dice.randint(1, 5)} for name in ("cpu", "memory")]
    if dice.chance(0.5):
        made.append({"name": GPU, "weight": 3})
    if dice.rarely(0.3):
        extra = [
            {"name": name, "weight": dice.choice((1, 10, 100))}
            for name in dice.some((FOO, "ephemeral-storage", HUGE), 1, 2)
        ]
        made = dice.some(made, 0, 3) + extra
    return made


def shape(dice: Dice) -> list[Json]:
    if dice.rarely(0.5):
        utilizations = sorted(dice.some(range(101), 1, 5))
        return [{"utilization": u, "score": dice.randint(0, 10)} for u in utilizations]
    middle = [{"utilization": 60, "score": 3}] if dice.chance(0.6) else []
    ends = (0, 10) if dice.chance(0.5) else (10, 0)
    return [{"utilization": 0, "score": ends[0]}, *middle, {"utilization": 100, "score": ends[1]}]


def fit_args(dice: Dice) -> Json:
    strategy: Json = {"type": dice.choice(("LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"))}
    strategy["resources"] = scoring_resources(dice)
    if strategy["type"] == "RequestedToCapacityRatio":
        strategy["requestedToCapacityRatio"] = {"shape": shape(dice)}
    if dice.rarely(0.1):
        del strategy["resources"]
    fields: Json = {"scoringStrategy": strategy}
    if dice.chance(0.3):
        fields["ignoredResources"] = [FOO]
    if dice.rarely(0.2):
        fields["ignoredResourceGroups"] = ["example.com"]
    return plugin_args("NodeResourcesFit", fields)


def spread_args(dice: Dice) -> Json:
    if dice.rarely(0.2):
        return plugin_args(
            "PodTopologySpread",
            dice.choice(({"defaultingType": "System"}, {"defaultingType": "List", "defaultConstraints": []})),
        )
    made: dict[tuple[str, str], Json] = {}
    for _ in range(1 if not dice.rarely(0.5) else 3):
        constraint: Json = {
            "maxSkew": dice.randint(1, 3),
            "topologyKey": dice.choice((ZONE, HOSTNAME)) if not dice.rarely(0.3) else "disktype",
            "whenUnsatisfiable": dice.choice(("DoNotSchedule", "ScheduleAnyway")),
        }
        made.setdefault((constraint["topologyKey"], constraint["whenUnsatisfiable"]), constraint)
    return plugin_args("PodTopologySpread", {"defaultingType": "List", "defaultConstraints": list(made.values())})


def added_affinity(dice: Dice) -> Json:
    term = {"matchExpressions": [{"key": "disktype", "operator": "Exists"}]}
    affinity: Json = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    if dice.rarely(0.6):
        affinity = node_affinity(dice, 5, lambda _: dice.chance(0.6))
    return plugin_args("NodeAffinity", {"addedAffinity": affinity})


def balanced_args(dice: Dice) -> Json:
    names: Sequence[str] = ("cpu", "memory", GPU)
    if dice.rarely(0.5):
        names = dice.some(("cpu", "memory", GPU, "ephemeral-storage", FOO), 1, 5)
    return plugin_args(
        "NodeResourcesBalancedAllocation", {"resources": [{"name": name, "weight": 1} for name in names]}
    )


def affinity_args(dice: Dice) -> Json:
    fields = {
        "hardPodAffinityWeight": dice.choice((0, 1, 50, 100)),
        "ignorePreferredTermsOfExistingPods": dice.chance(0.33),
    }
    return plugin_args("InterPodAffinity", fields)


def plugin_sets(dice: Dice) -> Json:
    made: Json = {}
    if dice.chance(0.85):
        disabled = dice.some(SCORERS, 0, 3)
        enabled = [{"name": name, "weight": dice.randint(1, 10)} for name in disabled[: dice.randint(0, 2)]]
        made["score"] = {"disabled": [{"name": name} for name in disabled], "enabled": enabled}
    if dice.chance(0.22) or not made:
        made["filter"] = {"disabled": [{"name": dice.choice(("InterPodAffinity", "NodePorts", "TaintToleration"))}]}
    return made


def odd_plugin_sets(dice: Dice) -> Json:
    weighted = [{"name": name, "weight": dice.randint(1, 10)} for name in dice.some(SCORERS, 1, 6)]
    filters = [
        {"name": n}
        for n in dice.some(("NodeResourcesFit", "NodeName", "NodePorts", "NodeAffinity", "TaintToleration"), 1, 5)
    ]
    needed = [{"name": name} for name in ("PrioritySort", "DefaultBinder", "NodeResourcesFit")]
    off = dice.choice(("DefaultPreemption", "DynamicResources", "*"))
    return dice.choice(
        (
            {"score": {"disabled": [{"name": "*"}], "enabled": weighted}},
            {"score": {"disabled": [{"name": "*"}]}},
            {"score": {"enabled": weighted}},
            {"filter": {"disabled": [{"name": "*"}], "enabled": filters}},
            {"filter": {"enabled": filters}},
            {"multiPoint": {"disabled": [{"name": "*"}], "enabled": needed + weighted}},
            {"multiPoint": {"enabled": weighted}},
            {"multiPoint": {"disabled": [{"name": w["name"]} for w in weighted]}},
            {"multiPoint": {"disabled": [{"name": w["name"]} for w in weighted], "enabled": weighted}},
            {"postFilter": {"disabled": [{"name": off}]}},
            {"preScore": {"disabled": [{"name": dice.choice(SCORERS)}]}, "score": {"enabled": weighted}},
            {"score": {"disabled": [{"name": "*"}], "enabled": [*weighted, {"name": "VolumeBinding", "weight": 2}]}},
        )
    )


def profile(dice: Dice, name: str) -> Json:
    makers = ((fit_args, 0.6), (affinity_args, 0.4), (balanced_args, 0.35), (spread_args, 0.4), (added_affinity, 0.3))
    made: Json = {"schedulerName": name}
    configs = [make(dice) for make, rate in makers if dice.chance(rate)]
    if configs:
        made["pluginConfig"] = configs
    if dice.chance(0.57):
        made["plugins"] = plugin_sets(dice) if not dice.rarely(0.5) else odd_plugin_sets(dice)
    if dice.rarely(0.1):
        made["percentageOfNodesToScore"] = 50
    return made


def configuration(dice: Dice, pending: Sequence[Json]) -> Json:
    made: Json = {"apiVersion": CONFIG_VERSION, "kind": "KubeSchedulerConfiguration"}
    made["profiles"] = [profile(dice, "default-scheduler")]
    if dice.rarely(0.15):
        made["profiles"].append(profile(dice, "other-scheduler"))
        for each in pending:
            each["spec"]["schedulerName"] = dice.choice(("default-scheduler", "other-scheduler"))
    return made


# --- scenarios ---


def rates_of(family: str, wide: bool) -> tuple[dict[str, float], dict[str, float]]:
    features, share = FAMILIES[family]
    pending = {feature: PENDING_RATES[feature] * share for feature in features}
    bound = {feature: BOUND_RATES[feature] * (0.4 if family == "preempt" else 1.0) for feature in features}
    if wide:
        for feature in PENDING_RATES:
            pending.setdefault(feature, WIDE_RATE)
            bound.setdefault(feature, WIDE_RATE / 2)
    return pending, bound


def pending_pods(
    dice: Dice, family: str, nodes: int, rates: dict[str, float], claims: dict[str, list[str]]
) -> list[Json]:
    count = {"sequence": dice.randint(8, 30), "preempt": 4}.get(family, 5)
    made = [pod(dice, f"p{i}", nodes, rates, claims) for i in range(count)]
    for each in made:
        spec = each["spec"]
        if dice.chance(0.03):
            names = ("n0", "n1", "absent")
            affinity = spec.setdefault("affinity", {}).setdefault("nodeAffinity", {})
            affinity["requiredDuringSchedulingIgnoredDuringExecution"] = pinned(dice, names)
        elif dice.chance(0.02):
            spec["nodeSelector"] = {"nothing": "here"}
        if dice.rarely(0.01):
            spec["nodeName"] = ""
        for container in spec["containers"]:
            asked = container["resources"].get("requests", {})
            if asked and dice.chance(0.06):
                bigger = {name: value for name, value in (("cpu", "4"), ("memory", "8Gi")) if name in asked}
                asked |= bigger
                if "limits" in container["resources"]:
                    container["resources"]["limits"] |= bigger
        if family == "preempt":
            asked = {"cpu": dice.choice(("500m", "1", "1500m", "3")), "memory": dice.choice(("512Mi", "1Gi", "3Gi"))}
            spec["containers"][0]["resources"] = {"requests": asked}
        # Pods bound in a sequence have no start time, and among such pods upstream's order of victims means nothing.
        if family == "preempt" or (family != "sequence" and dice.rarely(0.3)):
            spec["priority"] = (
                dice.choice((50, 500, 2000, 2000)) if not dice.rarely(0.1) else dice.choice((-10, 1000, 2147483647))
            )
            if dice.chance(0.08):
                spec["preemptionPolicy"] = "Never"
    return made


def bound_pods(
    dice: Dice, family: str, nodes: int, rates: dict[str, float], claims: dict[str, list[str]]
) -> list[Json]:
    a_node = dice.randint(5, 12) if family == "preempt" else dice.random() * 4
    made = [bound_pod(dice, i, nodes, rates, claims) for i in range(int(nodes * a_node))]
    if family != "preempt":
        return made
    for each in made:
        spec = each["spec"]
        spec["priority"] = (
            dice.choice((0, 0, 10, 100, 1000)) if not dice.rarely(0.05) else dice.choice((-100, 500, 2000))
        )
        spec["containers"] = spec["containers"][:1]
        asked = {"cpu": dice.choice(("100m", "300m", "500m", "1")), "memory": dice.choice(("128Mi", "256Mi", "1Gi"))}
        spec["containers"][0]["resources"] = {"requests": asked}
        if not dice.rarely(0.1):
            spec.pop("initContainers", None)
    return made


def scenario(family: str, wide: bool, seed: str, index: int) -> Json:
    dice = Dice(f"{family}/{seed}/{index}")
    dice.wide = wide
    preempt = family == "preempt"
    nodes = dice.randint(3, 12 if preempt else 24) if not dice.rarely(0.05) else 1
    zones = ZONES[: dice.choice((1, 2, 3, 4))]
    taint_rate = {"taints": 0.45, "preempt": 0.1}.get(family, 0.2)
    objects = [node(dice, i, zones, taint_rate, preempt) for i in range(nodes)]
    objects += namespaces(dice)
    pending_rates, bound_rates = rates_of(family, wide)
    usable: dict[str, list[str]] = {}
    claims: dict[str, list[str]] = {}
    if "volumes" in pending_rates:
        objects += storage_classes(dice)
        objects += csi_nodes(dice, nodes)
        if wide:
            objects += capacity_objects(dice, nodes)
        for number in range(dice.randint(4, 14)):
            made = claim_objects(dice, number, nodes)
            objects += made
            where = made[-1]["metadata"]["namespace"]
            claims.setdefault(where, []).append(made[-1]["metadata"]["name"])
            if wide or made[-1]["status"]["phase"] == "Bound":
                usable.setdefault(where, []).append(made[-1]["metadata"]["name"])
    bound = bound_pods(dice, family, nodes, bound_rates, usable)
    pending = pending_pods(dice, family, nodes, pending_rates, claims)
    if wide:
        objects += ephemeral_claims(dice, bound + pending)
    if family == "defaultspread" or dice.rarely(0.2):
        objects += services(dice)
        if wide:
            objects += owners(dice, bound + pending)
    if preempt or dice.rarely(0.2):
        objects += disruption_budgets(dice)
    made_scenario: Json = {
        "id": f"{family}-{seed.replace('/', '-')}-{index}",
        "objects": objects + bound,
        "pending": pending,
    }
    if family == "sequence":
        made_scenario["sequence"] = True
    if family == "config" or dice.rarely(0.05):
        made_scenario["config"] = configuration(dice, pending)
    return made_scenario


def main() -> None:
    parser = argparse.ArgumentParser(description="Make scenarios at random, one JSON object a line.")
    parser.add_argument("family", choices=sorted(FAMILIES))
    parser.add_argument("count", type=int)
    parser.add_argument("seed")
    parser.add_argument("--wide", action="store_true", help="also what the conformance families never hold")
    options = parser.parse_args()
    seed = ("wide/" if options.wide else "") + options.seed
    for index in range(options.count):
        made = scenario(options.family, options.wide, seed, index)
        json.dump(made, sys.stdout, separators=(",", ":"))
        sys.stdout.write("\n")


if __name__ == "__main__":
    main()
