"""Clusters that no family has: any features at any rates, crowded or not, in sequence or not, with any configuration;
and then parts of their pods exchanged, and rarer things put in.

Like generate.py, from whose parts they are made: pure standard library, and the same arguments give the same cluster.
"""

from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import Any

import kubernetes.oracle.generate as g
from kubernetes.oracle import devices
from kubernetes.oracle.generate import Dice, Json

# --- rarer things, each put into a cluster that is made already ---


def exchange(dice: Dice, cluster: Json) -> None:
    """A pod gets a part of its spec from another."""
    pods = [each for each in cluster["objects"] if each["kind"] == "Pod"] + cluster["pending"]
    one, other = dice.choice(pods), dice.choice(pods)
    field = dice.choice(
        ("affinity", "tolerations", "topologySpreadConstraints", "nodeSelector", "containers", "volumes")
    )
    if field in other["spec"] and one["metadata"]["namespace"] == other["metadata"]["namespace"]:
        one["spec"][field] = deepcopy(other["spec"][field])
        forget_label_keys(one["spec"].get("affinity"))


def forget_label_keys(affinity: Any) -> None:
    """The API server wrote (mis)matchLabelKeys into the selectors when the pod was made: they were another pod's."""
    if isinstance(affinity, dict):
        for key in ("matchLabelKeys", "mismatchLabelKeys"):
            affinity.pop(key, None)
    if isinstance(affinity, dict | list):
        for inner in affinity.values() if isinstance(affinity, dict) else affinity:
            forget_label_keys(inner)


def exchange_labels(dice: Dice, cluster: Json) -> None:
    nodes = [each for each in cluster["objects"] if each["kind"] == "Node"]
    one, other = dice.choice(nodes)["metadata"]["labels"], dice.choice(nodes)["metadata"]["labels"]
    key = dice.choice((g.ZONE, g.REGION, g.HOSTNAME, "disktype", "gen"))
    if key in other:
        one[key] = other[key]
    else:
        one.pop(key, None)


def compare_words(dice: Dice, cluster: Json) -> None:
    """A node must be greater than a word: the API server lets it pass."""
    spec = dice.choice(cluster["pending"])["spec"]
    value = dice.choice(("x", "", "1.5", "0x10", "007", "9223372036854775807", "9223372036854775808"))
    term = {"matchExpressions": [{"key": "gen", "operator": dice.choice(("Gt", "Lt")), "values": [value]}]}
    affinity = spec.setdefault("affinity", {}).setdefault("nodeAffinity", {})
    if dice.chance(0.5):
        required = affinity.setdefault("requiredDuringSchedulingIgnoredDuringExecution", {"nodeSelectorTerms": []})
        required["nodeSelectorTerms"].append(term)
    else:
        preferred = affinity.setdefault("preferredDuringSchedulingIgnoredDuringExecution", [])
        preferred.append({"weight": dice.randint(1, 100), "preference": term})


def resize(dice: Dice, cluster: Json) -> None:
    """A bound pod is being resized: what it has been given is not what it asks for."""
    for each in cluster["objects"]:
        if each["kind"] != "Pod" or not dice.chance(0.3):
            continue
        statuses = []
        for container in each["spec"]["containers"]:
            status: Json = {"name": container["name"], "ready": True, "image": "", "imageID": "", "restartCount": 0}
            if dice.chance(0.8):
                status["allocatedResources"] = g.requests(dice)
            if dice.chance(0.8):
                status["resources"] = {"requests": g.requests(dice)}
            statuses.append(status)
        each["status"]["containerStatuses"] = statuses
        if dice.chance(0.3):
            reason = dice.choice(("Infeasible", "Deferred"))
            each["status"]["conditions"] = [{"type": "PodResizePending", "status": "True", "reason": reason}]


def nominate(dice: Dice, cluster: Json) -> None:
    """A waiting pod was promised a node before."""
    nodes = [each["metadata"]["name"] for each in cluster["objects"] if each["kind"] == "Node"]
    dice.choice(cluster["pending"])["status"]["nominatedNodeName"] = dice.choice((*nodes, "gone"))


def disrupt(dice: Dice, cluster: Json) -> None:
    """Some bound pods are on their way out, for a preemption or for something else."""
    for each in cluster["objects"]:
        if each["kind"] == "Pod" and dice.chance(0.15):
            each["metadata"] |= {"deletionTimestamp": "2026-01-10T00:00:00Z", "deletionGracePeriodSeconds": 30}
            if dice.chance(0.7):
                reason = dice.choice(("PreemptionByScheduler", "EvictionByEvictionAPI"))
                condition = {"type": "DisruptionTarget", "status": "True", "reason": reason}
                each["status"]["conditions"] = [condition]


def promise(dice: Dice, cluster: Json) -> None:
    """Waiting pods were promised nodes from which pods are leaving for them."""
    disrupt(dice, cluster)
    for _ in range(3):
        nominate(dice, cluster)


def same_age(dice: Dice, cluster: Json) -> None:
    """Many pods of few priorities started at the same time: who is spared is a matter of how they are sorted."""
    nodes = [each["metadata"]["name"] for each in cluster["objects"] if each["kind"] == "Node"]
    few = dice.some(nodes, 1, 2)
    started = dice.some([f"2026-01-0{day}T00:00:00Z" for day in range(1, 10)], 1, 3)
    for each in cluster["objects"]:
        if each["kind"] == "Pod":
            each["status"]["startTime"] = dice.choice(started)
            each["spec"]["priority"] = dice.choice((0, 0, 10))
            if dice.chance(0.7):
                each["spec"]["nodeName"] = dice.choice(few)


def huge(dice: Dice, cluster: Json) -> None:
    """Machines and pods larger than any."""
    for each in cluster["objects"]:
        if each["kind"] == "Node" and dice.chance(0.3):
            amounts = {"memory": dice.choice(("64Ti", "1Pi", "30Ti")), "cpu": dice.choice(("4096", "1000000"))}
            for field in ("capacity", "allocatable"):
                each["status"].setdefault(field, {}).update(amounts)
    for each in cluster["pending"]:
        if dice.chance(0.3):
            asked = {"memory": dice.choice(("1Ti", "20Ti", "1Pi")), "cpu": dice.choice(("512", "3000.5", "1000000"))}
            each["spec"]["containers"][0]["resources"] = {"requests": asked}


def want_devices(dice: Dice, cluster: Json) -> None:
    """A pod names resource claims that are not there; situate does not read those that are."""
    spec = dice.choice(cluster["pending"])["spec"]
    source = dice.choice(({"resourceClaimName": "no-such-claim"}, {"resourceClaimTemplateName": "template"}))
    spec["resourceClaims"] = [{"name": "device"} | source]


def crowd(dice: Dice, cluster: Json) -> None:
    """Some nodes take few pods, or none."""
    for each in cluster["objects"]:
        if each["kind"] == "Node" and dice.chance(0.4) and "allocatable" in each["status"]:
            each["status"]["allocatable"]["pods"] = dice.choice(("0", "1", "2", "4"))


def taint_twice(dice: Dice, cluster: Json) -> None:
    for each in cluster["objects"]:
        if each["kind"] == "Node" and dice.chance(0.3):
            taints = each["spec"].setdefault("taints", [])
            effects = {(taint["key"], taint["effect"]) for taint in taints}
            for effect in ("NoSchedule", "PreferNoSchedule", "NoExecute"):
                key = dice.choice(g.TAINT_KEYS)
                if (key, effect) not in effects:
                    taints.append({"key": key, "value": dice.choice((*g.TAINT_VALUES, "5", "10")), "effect": effect})


def unlabel(dice: Dice, cluster: Json) -> None:
    """Pods without labels or namespaces' objects; nodes without a hostname."""
    for each in [*cluster["objects"], *cluster["pending"]]:
        if each["kind"] in ("Pod", "Node") and dice.chance(0.15):
            labels = each["metadata"]["labels"]
            labels.pop(dice.choice(list(labels) or [""]), None)


def bare(dice: Dice, cluster: Json) -> None:
    """A field that need not be there is not."""
    pod = dice.choice([each for each in cluster["objects"] if each["kind"] == "Pod"] + cluster["pending"])
    optional = [key for key in pod["spec"] if key not in ("containers", "nodeName", "schedulerName", "volumes")]
    if optional:
        del pod["spec"][dice.choice(optional)]
    for container in pod["spec"]["containers"]:
        if dice.chance(0.3):
            container.pop("resources", None)


def misconfigure(dice: Dice, cluster: Json) -> None:
    """A configuration that may be none: either both refuse it or neither does."""
    if "config" not in cluster:
        return
    profile = cluster["config"]["profiles"][0]
    config = profile.setdefault("pluginConfig", [])
    plugins = profile.setdefault("plugins", {})
    weight = dice.choice((0, 101, -1))
    odd_args = (
        ("InterPodAffinity", {"hardPodAffinityWeight": weight}),
        ("NodeResourcesFit", {"scoringStrategy": {"type": "Least", "resources": [{"name": "cpu", "weight": 1}]}}),
        ("NodeResourcesFit", {"scoringStrategy": {"resources": [{"name": "cpu", "weight": weight}]}}),
        ("NodeResourcesFit", {"ignoredResources": [dice.choice(("cpu", "example.com/foo", "a/b/c", ""))]}),
        ("NodeResourcesBalancedAllocation", {"resources": [{"name": "memory", "weight": dice.choice((1, 2, 0))}]}),
        ("DefaultPreemption", {"minCandidateNodesPercentage": dice.choice((0, 10, 101, -1))}),
        ("VolumeBinding", {"bindTimeoutSeconds": dice.choice((0, 600, -1))}),
        ("PodTopologySpread", {"defaultingType": "System", "defaultConstraints": [g.spread_constraint(dice)]}),
    )
    name, fields = dice.choice(odd_args)
    kept = [one for one in config if one["name"] != name or dice.chance(0.1)]
    profile["pluginConfig"] = [*kept, g.plugin_args(name, fields)]
    if dice.chance(0.3):
        odd = {"name": dice.choice(("NoSuchPlugin", "ImageLocality", "PrioritySort")), "weight": dice.choice((0, 1, 7))}
        plugins.setdefault(dice.choice(("score", "filter", "queueSort")), {}).setdefault("enabled", []).append(odd)


def unprepare(dice: Dice, cluster: Json) -> None:
    """A profile disables what a plugin needs: kube-scheduler gives up on pods (docs/internals/conformance.md)."""
    if "config" in cluster:
        plugins = cluster["config"]["profiles"][0].setdefault("plugins", {})
        names = ("NodeAffinity", "VolumeZone", "VolumeBinding", "VolumeRestrictions", "NodeVolumeLimits")
        others = ("NodeResourcesFit", "NodePorts", "PodTopologySpread", "InterPodAffinity", "TaintToleration")
        rest = ("DynamicResources", "NodeDeclaredFeatures", "NodeResourcesBalancedAllocation")
        name = dice.choice(names * 3 + others + rest)
        point = dice.choice(("preFilter", "preScore"))
        plugins.setdefault(point, {}).setdefault("disabled", []).append({"name": name})


RARE: Sequence[tuple[Callable[[Dice, Json], None], float]] = (
    (exchange, 0.9),
    (exchange_labels, 0.4),
    (compare_words, 0.05),
    (resize, 0.12),
    (nominate, 0.15),
    (disrupt, 0.1),
    (promise, 0.06),
    (same_age, 0.08),
    (huge, 0.05),
    (want_devices, 0.03),
    (crowd, 0.08),
    (taint_twice, 0.1),
    (unlabel, 0.15),
    (bare, 0.3),
    (misconfigure, 0.1),
    (unprepare, 0.06),
)
EXCHANGES = 4
"""How often at most each rare thing is put in."""

# --- the clusters ---


def rates(dice: Dice) -> tuple[dict[str, float], dict[str, float]]:
    """Some features, often or seldom."""
    chosen = dice.some(list(g.PENDING_RATES), 1, len(g.PENDING_RATES))
    volumes = dice.chance(0.4)
    pending = {name: dice.choice((0.1, 0.3, 0.6)) for name in chosen if name != "volumes" or volumes}
    bound = {name: dice.choice((0.05, 0.15, 0.4)) for name in pending}
    return pending, bound


def storage(dice: Dice, nodes: int, objects: list[Json]) -> dict[str, list[str]]:
    """Adds storage objects; gives the names of the claims by namespace."""
    objects += g.storage_classes(dice)
    objects += g.csi_nodes(dice, nodes)
    if dice.wide:
        objects += g.capacity_objects(dice, nodes)
    claims: dict[str, list[str]] = {}
    for number in range(dice.randint(2, 14)):
        made = g.claim_objects(dice, number, nodes)
        objects += made
        claims.setdefault(made[-1]["metadata"]["namespace"], []).append(made[-1]["metadata"]["name"])
    return claims


def mixture(seed: str, index: int, version: str = "1.36") -> Json:
    dice = Dice(f"mixture/{seed}/{index}")
    dice.wide = dice.chance(0.7)
    crowded, sequence = dice.chance(0.35), dice.chance(0.15)
    nodes = dice.choice((1, 2, 3, 5, 8, 13, 21)) if not crowded else dice.randint(1, 9)
    taint_rate = dice.choice((0.0, 0.1, 0.45))
    zones = g.ZONES[: dice.randint(1, 4)]
    objects = [g.node(dice, i, zones, taint_rate, crowded) for i in range(nodes)]
    objects += g.namespaces(dice)
    pending_rates, bound_rates = rates(dice)
    claims = storage(dice, nodes, objects) if "volumes" in pending_rates else {}
    # Pods bound in a sequence have no start time, and among such pods upstream's order of victims means nothing.
    family = "preempt" if crowded and not sequence else "sequence" if sequence else "mixed"
    bound = g.bound_pods(dice, family, nodes, bound_rates, claims)
    pending = g.pending_pods(dice, family, nodes, pending_rates, claims)
    if claims:
        objects += g.ephemeral_claims(dice, bound + pending)
    if dice.chance(0.4):
        objects += g.services(dice)
        objects += g.owners(dice, bound + pending)
    if dice.chance(0.4):
        objects += g.disruption_budgets(dice)
    made: Json = {"id": f"mixture-{seed}-{index}", "objects": objects + bound, "pending": pending}
    if sequence:
        made["sequence"] = True
    if dice.chance(0.3):
        made["config"] = g.configuration(dice, pending)
    for put, rate in RARE:
        for _ in range(dice.randint(1, EXCHANGES) if dice.chance(rate) else 0):
            put(dice, made)
    if dice.chance(0.35):
        made["objects"] += devices.furnish(dice, dice.choice(devices.FAMILIES), version, nodes, pending)
        devices.spare(made)
    return made
