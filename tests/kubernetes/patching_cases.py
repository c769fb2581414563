"""Random objects and patches of them, the same for the same seed: fragments that touch one thing each, put together."""

import random
from collections.abc import Callable
from typing import Any

Json = dict[str, Any]
Rng = random.Random

NAMES = ("a", "b", "c")
PROTOCOLS = ("TCP", "UDP")


def pick(rng: Rng, *choices: Any) -> Any:
    return rng.choice(choices)


def some(rng: Rng, items: tuple[Any, ...], least: int = 1) -> list[Any]:
    chosen: list[Any] = rng.sample(items, rng.randint(least, len(items)))
    return chosen


def texts(rng: Rng, *, nulls: bool) -> Json:
    return {name: None if nulls and rng.random() < 0.3 else pick(rng, "1", "2") for name in some(rng, NAMES)}


# ── fragments: each takes the dice and whether directives and nulls may be used ──────────────────────────────────────


def labels(rng: Rng, smart: bool) -> Json:
    return {"metadata": {pick(rng, "labels", "annotations"): texts(rng, nulls=smart)}}


def finalizers(rng: Rng, smart: bool) -> Json:
    every = tuple(f"example.com/{name}" for name in NAMES)
    if not smart:
        return {"metadata": {"finalizers": some(rng, every)}}
    match rng.randrange(4):
        case 0:
            return {"metadata": {"$deleteFromPrimitiveList/finalizers": some(rng, every)}}
        case 1:
            order = some(rng, every, 2)
            return {"metadata": {"$setElementOrder/finalizers": order, "finalizers": order[:1]}}
        case 2:
            return {"metadata": {"finalizers": None}}
    return {"metadata": {"finalizers": some(rng, every)}}


def owners(rng: Rng, smart: bool) -> Json:
    def owner(name: str) -> Json:
        if smart and rng.random() < 0.3:
            return {"$patch": "delete", "uid": f"uid-{name}"}
        return {"apiVersion": "v1", "kind": "Secret", "name": pick(rng, "x", "y"), "uid": f"uid-{name}"}

    return {"metadata": {"ownerReferences": [owner(name) for name in some(rng, NAMES)]}}


def containers(rng: Rng, smart: bool) -> list[Json]:
    chosen = some(rng, NAMES)
    return [container(rng, name, smart) for name in chosen]


def container(rng: Rng, name: str, smart: bool) -> Json:
    if smart and rng.random() < 0.1:
        return {"$patch": "delete", "name": name}
    found: Json = {"name": name, "image": pick(rng, "one", "two")}
    for part in rng.sample((env, ports, mounts, resources, command, probes), rng.randint(0, 4)):
        found |= part(rng, smart)
    return found


def env(rng: Rng, smart: bool) -> Json:
    def one(name: str) -> Json:
        match rng.randrange(5):
            case 0 if smart:
                return {"name": name, "$patch": "delete"}
            case 1 if smart:
                return {"name": name, "value": None, "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}
            case 2:
                return {"name": name, "valueFrom": {"configMapKeyRef": {"name": pick(rng, "m", "n"), "key": "k"}}}
        return {"name": name, "value": pick(rng, "1", "2")}

    chosen = some(rng, NAMES)
    found: Json = {"env": [one(name) for name in chosen]}
    if smart and rng.random() < 0.3:
        missing = [name for name in NAMES if name not in chosen]
        found["$setElementOrder/env"] = [{"name": name} for name in (*chosen, *missing)]
    return found


def ports(rng: Rng, smart: bool) -> Json:
    def one(number: int) -> Json:
        if smart and rng.random() < 0.15:
            return {"$patch": "delete", "containerPort": number}
        found: Json = {"containerPort": number}
        if rng.random() < 0.5:
            found["protocol"] = pick(rng, *PROTOCOLS)
        if rng.random() < 0.5:
            found["name"] = pick(rng, f"p{number}", f"q{number}")
        return found

    return {"ports": [one(number) for number in some(rng, (80, 81, 82))]}


def mounts(rng: Rng, smart: bool) -> Json:
    found = [
        {"mountPath": f"/{name}", "name": "scratch", "readOnly": pick(rng, True, False)} for name in some(rng, NAMES)
    ]
    if smart and rng.random() < 0.2:
        found.append({"$patch": "replace"})
    return {"volumeMounts": found}


def resources(rng: Rng, smart: bool) -> Json:
    cpu = None if smart and rng.random() < 0.3 else pick(rng, "1", "2")
    return {"resources": {"requests": {"cpu": cpu, "memory": pick(rng, "1Gi", "2Gi")}, "limits": {"cpu": "4"}}}


def command(rng: Rng, smart: bool) -> Json:
    return {"command": pick(rng, ["run"], ["run", "it"], None if smart else ["so"])}


def probes(rng: Rng, smart: bool) -> Json:
    by: Json = pick(rng, {"httpGet": {"path": "/", "port": pick(rng, 80, "p80")}}, {"exec": {"command": ["true"]}})
    if smart:
        by["$retainKeys"] = [*by, "periodSeconds"]
    return {"livenessProbe": {**by, "periodSeconds": pick(rng, 5, 7)}}


def volumes(rng: Rng, smart: bool) -> Json:
    def one(name: str) -> Json:
        source: Json = pick(rng, {"emptyDir": {}}, {"configMap": {"name": "m"}}, {"secret": {"secretName": "s"}})
        return {"name": name, **source} | ({"$retainKeys": ["name", *source]} if smart else {})

    return {"volumes": [one(name) for name in some(rng, NAMES)]}


def tolerations(rng: Rng, smart: bool) -> Json:
    return {"tolerations": [{"key": name, "operator": "Exists"} for name in some(rng, NAMES)]}


def pull_secrets(rng: Rng, smart: bool) -> Json:
    found: list[Json] = [{"name": name} for name in some(rng, NAMES)]
    if smart and rng.random() < 0.5:
        return {
            "imagePullSecrets": found[:1] + [{"$patch": "delete", "name": one["name"]} for one in found[1:]],
            "$setElementOrder/imagePullSecrets": found[:1],
        }
    return {"imagePullSecrets": found}


def aliases(rng: Rng, smart: bool) -> Json:
    return {"hostAliases": [{"ip": f"10.0.0.{n}", "hostnames": some(rng, NAMES)} for n in some(rng, (1, 2, 3))]}


def spreads(rng: Rng, smart: bool) -> Json:
    def one(key: str) -> Json:
        action = pick(rng, "DoNotSchedule", "ScheduleAnyway")
        selector = {"matchLabels": {"app": pick(rng, "x", "y")}}
        return {"topologyKey": key, "maxSkew": pick(rng, 1, 2), "whenUnsatisfiable": action, "labelSelector": selector}

    return {"topologySpreadConstraints": [one(key) for key in some(rng, NAMES)]}


def node_selector(rng: Rng, smart: bool) -> Json:
    found = texts(rng, nulls=smart)
    return {"nodeSelector": found | ({"$patch": "replace"} if smart and rng.random() < 0.2 else {})}


def affinity(rng: Rng, smart: bool) -> Json:
    terms = [{"matchExpressions": [{"key": name, "operator": "Exists"}]} for name in some(rng, NAMES)]
    return {
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}
    }


def scalars_of_pod(rng: Rng, smart: bool) -> Json:
    grace = pick(rng, 10, 20, None if smart else 30)
    return {"terminationGracePeriodSeconds": grace, "securityContext": pick(rng, {"runAsUser": 1}, {"runAsGroup": 2})}


def template(rng: Rng, smart: bool) -> Json:
    parts = (volumes, tolerations, pull_secrets, aliases, spreads, node_selector, affinity, scalars_of_pod)
    found: Json = {}
    for part in rng.sample(parts, rng.randint(0, 2)):
        found |= part(rng, smart)
    if rng.random() < 0.7:
        found["containers"] = containers(rng, smart)
        if smart and rng.random() < 0.3:
            names = [one["name"] for one in found["containers"] if "$patch" not in one]
            order = names + [name for name in NAMES if name not in names]
            found["$setElementOrder/containers"] = [{"name": name} for name in order]
    return {"spec": {"template": {"spec": found}}}


def replicas(rng: Rng, smart: bool) -> Json:
    return {"spec": {"replicas": pick(rng, 1, 2, 3, None if smart else 4)}}


def strategy(rng: Rng, smart: bool) -> Json:
    if smart and rng.random() < 0.7:
        return {"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}}
    rolling = {"maxSurge": pick(rng, 1, "30%")}
    return {"spec": {"strategy": {"type": "RollingUpdate", "rollingUpdate": rolling}}}


def data(rng: Rng, smart: bool) -> Json:
    found: Json = pick(rng, {"data": texts(rng, nulls=smart)}, {"binaryData": {"z": pick(rng, "AA==", "AQ==")}})
    return found


def service(rng: Rng, smart: bool) -> Json:
    def one(number: int) -> Json:
        if smart and rng.random() < 0.15:
            return {"$patch": "delete", "port": number}
        found = {"port": number, "name": f"p{number}", "targetPort": pick(rng, 8080, "web")}
        return found | ({"protocol": pick(rng, *PROTOCOLS)} if rng.random() < 0.3 else {})

    spec: Json = {"ports": [one(number) for number in some(rng, (80, 81, 82))]}
    if rng.random() < 0.5:
        spec["selector"] = texts(rng, nulls=smart)
    if rng.random() < 0.3:
        spec["sessionAffinity"] = pick(rng, "ClientIP", "None")
    return {"spec": spec}


def taints(rng: Rng, smart: bool) -> Json:
    return {"spec": {"taints": [{"key": name, "effect": "NoSchedule"} for name in some(rng, NAMES)]}}


def cordon(rng: Rng, smart: bool) -> Json:
    return {"spec": {"unschedulable": pick(rng, True, None if smart else True)}}


def conditions(rng: Rng, smart: bool) -> Json:
    chosen = some(rng, ("Ready", "DiskPressure", "PIDPressure"))
    found: list[Json] = [{"type": one, "status": pick(rng, "True", "False")} for one in chosen]
    if smart and rng.random() < 0.3:
        found[0] = {"$patch": "delete", "type": chosen[0]}
    return {"status": {"conditions": found}}


def addresses(rng: Rng, smart: bool) -> Json:
    chosen = some(rng, ("InternalIP", "Hostname", "ExternalIP"))
    return {"status": {"addresses": [{"type": one, "address": pick(rng, "1.1.1.1", "2.2.2.2")} for one in chosen]}}


def capacity(rng: Rng, smart: bool) -> Json:
    return {"status": {"capacity": {"cpu": pick(rng, "4", "8")}, "allocatable": {"cpu": "4", "pods": "10"}}}


def phase(rng: Rng, smart: bool) -> Json:
    nominated = None if smart else "node-1"
    return {"status": {"phase": pick(rng, "Pending", "Running"), "nominatedNodeName": pick(rng, "node-0", nominated)}}


def image(rng: Rng, smart: bool) -> Json:
    return {"spec": {"containers": [{"name": "a", "image": pick(rng, "one", "two", "three")}]}}


def deadline(rng: Rng, smart: bool) -> Json:
    return {"spec": {"activeDeadlineSeconds": pick(rng, 100, 90)}}


def more_tolerations(rng: Rng, smart: bool) -> Json:
    return {"spec": tolerations(rng, smart)}


Fragment = Callable[[Rng, bool], Json]
OF_ANY: tuple[Fragment, ...] = (labels, finalizers, owners)


def joined(rng: Rng, fragments: tuple[Fragment, ...], *, smart: bool, most: int = 3) -> Json:
    """Several fragments as one patch or configuration."""
    result: Json = {}
    for fragment in rng.sample(fragments, rng.randint(1, min(most, len(fragments)))):
        overlay(result, fragment(rng, smart))
    return result


def overlay(result: Json, more: Json) -> None:
    for name, value in more.items():
        if isinstance(value, dict) and isinstance(result.get(name), dict):
            overlay(result[name], value)
        else:
            result[name] = value
