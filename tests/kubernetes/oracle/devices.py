"""Makes clusters with devices at random: slices, classes, claims, and pods that claim devices or ask for resources.

Like generate.py, from whose parts they are made: pure standard library, and the same arguments give the same cluster.
Plain, a cluster has the shapes and values of the recorded families `dra`, `drashared`, `draparts` and `draextended`.
With `wide` it also has what those never have. It has nothing on which kube-scheduler's own answer is random: two keys
for one attribute, slices of one generation that differ about their number.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import kubernetes.oracle.generate as g
from kubernetes.oracle.generate import Dice, Json

API = "resource.k8s.io/v1"
GPU, NIC = "gpu.example.com", "nic.example.com"
MODELS = {"a100": "40Gi", "h100": "80Gi", "l4": "24Gi", "t4": "16Gi"}
FIRMWARE = ("1.2.3", "1.10.0", "2.0.0", "2.1.0-rc.1")
NODE_FIELDS = ("nodeName", "allNodes", "nodeSelector", "perDevice")
IMPLICIT = "deviceclass.resource.kubernetes.io/"
FINALIZER = "resource.kubernetes.io/delete-protection"
EXTENDED = "resource.kubernetes.io/extended-resource-claim"
CREATED = "2026-01-01T00:00:00Z"

GPU_SELECTORS = (
    'device.attributes["gpu.example.com"].model == "{model}"',
    'device.attributes["gpu.example.com"].model in ["a100", "h100"]',
    'device.attributes["gpu.example.com"].model.startsWith("{letter}")',
    'device.attributes["gpu.example.com"].model.matches("^[ah]100$")',
    '["a100", "l4"].exists(m, m == device.attributes["gpu.example.com"].model)',
    'device.attributes["gpu.example.com"].index < {number}',
    'device.attributes["gpu.example.com"].index % 2 == 0 && device.attributes["gpu.example.com"].healthy',
    'device.capacity["gpu.example.com"].memory.compareTo(quantity("{memory}")) >= 0',
    'device.capacity["gpu.example.com"].memory.isGreaterThan(quantity("23Gi"))',
    'device.attributes["gpu.example.com"].firmware.compareTo(semver("1.10.3")) >= 0',
    'device.attributes["gpu.example.com"].firmware.isLessThan(semver("2.0.0"))',
    'has(device.attributes["gpu.example.com"].numa) && device.attributes["gpu.example.com"].numa == {bit}',
    '!device.attributes["gpu.example.com"].healthy || device.attributes["gpu.example.com"].model != "t4"',
    'cel.bind(m, device.attributes["gpu.example.com"].model, m == "h100" || m == "l4")',
)
NIC_SELECTORS = (
    'device.attributes["nic.example.com"].speed >= {speed}',
    'device.attributes["nic.example.com"].sriov',
    'has(device.attributes["nic.example.com"].rail) && device.attributes["nic.example.com"].rail != 1',
)
ANY_SELECTORS = ('device.driver == "gpu.example.com"', 'device.driver == "nic.example.com"')
ODD_SELECTORS = (
    "true",
    "false",
    "device.allowMultipleAllocations",
    '!("gpu.example.com" in device.attributes)',
    'device.attributes["gpu.example.com"].?model.orValue("none") != "t4"',
    'device.attributes["gpu.example.com"].numa == 0',
    'device.attributes["gpu.example.com"].model > 3',
    'device.attributes["nic.example.com"].speed / 0 == 1',
    'device.attributes["root.example.com"].pcie == "p0"',
    'device.capacity["gpu.example.com"].memory == quantity("40Gi")',
    'size(device.attributes["gpu.example.com"].model) == 4',
    'device.attributes["gpu.example.com"].firmware == "1.2.3"',
)
WRONG_SELECTORS = ("device.nothing", "1", 'device.driver == "', "device.driver")
MATCHED = ("gpu.example.com/model", "gpu.example.com/index", "gpu.example.com/numa", "root.example.com/pcie")


@dataclass(slots=True)
class Devices:
    """What a cluster's devices are like, and which there are."""

    version: str = "1.36"
    taints: float = 0.0
    parts: float = 0.0
    """How often a pool has shared counters, or devices that several claims share."""
    broken: float = 0.0
    """How often a pool is old, incomplete or invalid."""
    known: list[tuple[str, str, str, str, Json]] = field(default_factory=list)
    """(node or an empty text, driver, pool, device's name, device)."""


# --- devices and slices ---


def gpu(dice: Dice, index: int, model: str) -> Json:
    attributes: Json = {"model": {"string": model}, "index": {"int": index}}
    attributes["healthy"] = {"bool": dice.chance(0.85)}
    attributes["firmware"] = {"version": dice.choice(FIRMWARE)}
    attributes["root.example.com/pcie"] = {"string": f"p{index // 2}"}
    if dice.chance(0.8):
        attributes["numa"] = {"int": index % 2}
    if dice.rarely(0.1):
        attributes["gpu.example.com/model"] = attributes.pop("model")
    if dice.rarely(0.05):
        del attributes[dice.choice(list(attributes))]
    capacity: Json = {"memory": {"value": MODELS[model]}}
    if dice.rarely(0.3):
        capacity["slots"] = {"value": dice.choice(("1", "2", "4", "500m", "7"))}
    return {"name": f"gpu-{index}", "attributes": attributes, "capacity": capacity}


def nic(dice: Dice, index: int) -> Json:
    attributes: Json = {"speed": {"int": dice.choice((10, 25, 100))}, "sriov": {"bool": dice.chance(0.5)}}
    if dice.chance(0.8):
        attributes["rail"] = {"int": index}
    attributes["root.example.com/pcie"] = {"string": f"p{index // 2}"}
    return {"name": f"nic-{index}", "attributes": attributes}


def taint(dice: Dice) -> Json:
    effect = dice.choice(("NoSchedule", "NoSchedule", "NoExecute")) if not dice.rarely(0.2) else "None"
    made = {"key": dice.choice(("dirty", "slow")), "value": dice.choice(("yes", "maybe")), "effect": effect}
    if dice.rarely(0.2):
        del made["value"]
    return made | {"timeAdded": CREATED}


def share(dice: Dice, device: Json) -> None:
    """Several claims may have the device at once."""
    device["allowMultipleAllocations"] = True
    if dice.rarely(0.1):
        del device["capacity"]
        return
    policies: list[Json] = [
        {"default": "4Gi", "validRange": {"min": "1Gi", "step": "1Gi"}},
        {"default": "2Gi", "validRange": {"min": "2Gi", "max": "12Gi"}},
        {"default": "8Gi", "validValues": ["8Gi", "16Gi"]},
    ]
    if dice.wide:
        policies += [
            {"default": "1Gi", "validRange": {"min": "1Gi"}},
            {"default": "1500M", "validRange": {"min": "500M", "max": "9G", "step": "250M"}},
            {"default": "3Gi", "validValues": ["1Gi", "3Gi", "5Gi", "20Gi"]},
            {"default": "2Gi", "validRange": {"min": "1Gi", "max": "16Gi", "step": "3Gi"}},
            {"default": "1Gi"},
        ]
    if dice.chance(0.7):
        device["capacity"]["memory"]["requestPolicy"] = dice.choice(policies)


def counters(dice: Dice, devices: Sequence[Json]) -> list[Json]:
    """The counters of one or two cards; the devices are told what they consume."""
    sets = [f"card-{number}" for number in range(1 if dice.chance(0.8) else 2)]
    for device in devices:
        if dice.rarely(0.1):
            continue
        cores = dice.choice((2, 4, 8))
        consumed = {"cores": {"value": str(cores)}, "memory": {"value": f"{cores * 5}Gi"}}
        if dice.rarely(0.2):
            del consumed[dice.choice(list(consumed))]
        device["consumesCounters"] = [{"counterSet": dice.choice(sets), "counters": consumed}]
        if dice.rarely(0.1) and len(sets) > 1:
            device["consumesCounters"] = [{"counterSet": name, "counters": consumed} for name in sets]
    return [{"name": name, "counters": {"cores": {"value": "8"}, "memory": {"value": "40Gi"}}} for name in sets]


def condition(dice: Dice, device: Json) -> None:
    """The device has to be made ready for a pod."""
    device["bindingConditions"] = ["example.com/attached"]
    device["bindingFailureConditions"] = ["example.com/failed"]
    if dice.chance(0.3):
        device["bindsToNode"] = True


def zones(dice: Dice) -> Json:
    expressions: list[Json] = [{"key": g.ZONE, "operator": "In", "values": dice.some(g.ZONES, 1, 3)}]
    if dice.rarely(0.3):
        expressions.append({"key": "disktype", "operator": "Exists"})
    return {"nodeSelectorTerms": [{"matchExpressions": expressions}]}


def pool(dice: Dice, made: Devices, driver: str, name: str, where: Json, devices: list[Json]) -> Iterator[Json]:
    """The slices of one pool. `where` says from which nodes it can be reached."""
    for device in devices:
        if dice.chance(made.taints):
            device["taints"] = [taint(dice) for _ in range(1 if not dice.rarely(0.3) else 2)]
        if driver == GPU and dice.chance(made.parts):
            share(dice, device)
        if dice.rarely(0.04):
            condition(dice, device)
    sets = counters(dice, devices) if driver == GPU and dice.chance(made.parts) else []
    parts = [devices]
    if len(devices) > 1 and dice.chance(0.3):
        middle = dice.randrange(1, len(devices))
        parts = [devices[:middle], devices[middle:]]
    generation = dice.choice((1, 1, 3))
    bodies: list[Json] = ([{"sharedCounters": sets}] if sets else []) + [{"devices": part} for part in parts]
    of_pool = {"name": name, "generation": generation, "resourceSliceCount": len(bodies)}
    if dice.chance(made.broken):
        spoil(dice, of_pool, bodies, devices)
    node = where.get("nodeName", "")
    made.known += [(node, driver, name, device["name"], device) for device in devices]
    for number, body in enumerate(bodies):
        yield slice_of(f"{name}-{driver[:3]}-{number}", driver, of_pool, where, body)
    if dice.chance(made.broken):  # an older generation that its driver has not removed yet
        old = of_pool | {"generation": generation - 1, "resourceSliceCount": 1}
        yield slice_of(f"{name}-{driver[:3]}-old", driver, old, where, {"devices": [devices[0]]})


def spoil(dice: Dice, of_pool: Json, bodies: list[Json], devices: Sequence[Json]) -> None:
    """The pool is being updated, or no pool at all."""
    if not dice.wide or dice.chance(0.6):
        of_pool["resourceSliceCount"] += 1
        return
    device = dice.choice(devices)
    match dice.choice(("twice", "set", "counter", "sets")):
        case "twice":
            bodies[-1]["devices"] = [*bodies[-1]["devices"], devices[0]]
        case "set":
            amount = {"cores": {"value": "1"}}
            device["consumesCounters"] = [{"counterSet": "no-such-card", "counters": amount}]
        case "counter" if "consumesCounters" in device:
            device["consumesCounters"][0]["counters"]["none"] = {"value": "1"}
        case _ if "sharedCounters" in bodies[0]:
            bodies[0]["sharedCounters"] = bodies[0]["sharedCounters"] * 2


def slice_of(name: str, driver: str, of_pool: Json, where: Json, body: Json) -> Json:
    if where.get("perDeviceNodeSelection") and "devices" in body:
        body = {"devices": [dict(device) for device in body["devices"]]}
    spec = {"driver": driver, "pool": of_pool} | where | body
    return {"apiVersion": API, "kind": "ResourceSlice", "metadata": {"name": name}, "spec": spec}


def slices(dice: Dice, made: Devices, nodes: int) -> Iterator[Json]:
    """Devices on the nodes, and some that several nodes reach."""
    for index in range(nodes):
        where = {"nodeName": f"n{index}"}
        if dice.chance(0.75):
            model = dice.choice(list(MODELS))
            count = dice.choice((1, 2, 2, 4, 4, 8)) if not dice.rarely(0.1) else 3
            devices = [gpu(dice, i, model if not dice.rarely(0.2) else "t4") for i in range(count)]
            yield from pool(dice, made, GPU, f"n{index}", where, devices)
        if dice.chance(0.4):
            devices = [nic(dice, i) for i in range(dice.choice((1, 2, 4)))]
            yield from pool(dice, made, NIC, f"n{index}", where, devices)
    if dice.chance(0.5):
        devices = [nic(dice, i) for i in range(dice.randint(1, 3))]
        everywhere = dice.choice(({"allNodes": True}, {"nodeSelector": zones(dice)}))
        if dice.rarely(0.3):
            everywhere = {"perDeviceNodeSelection": True}
            for device in devices:
                device.update(reach(dice, nodes))
        yield from pool(dice, made, NIC, "fabric", everywhere, devices)


def reach(dice: Dice, nodes: int) -> Json:
    return dice.choice(({"nodeName": f"n{dice.randrange(nodes)}"}, {"allNodes": True}, {"nodeSelector": zones(dice)}))


def taint_rules(dice: Dice) -> Iterator[Json]:
    """Rules that taint devices; only Kubernetes 1.37 reads them."""
    for number in range(dice.randint(1, 2)):
        selector: Json = {}
        if dice.chance(0.6):
            selector["driver"] = dice.choice((GPU, NIC))
        if dice.chance(0.5):
            selector["pool"] = f"n{dice.randrange(6)}"
        if dice.chance(0.3):
            selector["device"] = dice.choice(("gpu-0", "nic-0", "gpu-1"))
        spec: Json = {"taint": taint(dice)}
        if dice.chance(0.9):
            spec["deviceSelector"] = selector
        yield {"apiVersion": API, "kind": "DeviceTaintRule", "metadata": {"name": f"rule{number}"}, "spec": spec}


# --- classes ---


def device_class(name: str, *expressions: str) -> Json:
    spec: Json = {}
    if expressions:
        spec["selectors"] = [{"cel": {"expression": expression}} for expression in expressions]
    return {"apiVersion": API, "kind": "DeviceClass", "metadata": {"name": name}, "spec": spec}


def classes(dice: Dice, *, extended: bool) -> list[Json]:
    is_gpu = f'device.driver == "{GPU}"'
    large = 'device.capacity["gpu.example.com"].memory.compareTo(quantity("40Gi")) >= 0'
    made = [
        device_class("gpu", is_gpu),
        device_class("big-gpu", is_gpu, large),
        device_class("nic", f'device.driver == "{NIC}"'),
        device_class("any"),
    ]
    if extended:
        made[0]["spec"]["extendedResourceName"] = g.GPU
        if dice.rarely(0.3):
            made[2]["spec"]["extendedResourceName"] = g.FOO
        if dice.rarely(0.2):  # two classes for one name: the newer one has it
            made[1]["spec"]["extendedResourceName"] = g.GPU
    for number, one in enumerate(made):
        one["metadata"]["creationTimestamp"] = f"2026-01-0{number + 1}T00:00:00Z"
        if dice.rarely(0.2):
            parameters = {"driver": GPU, "parameters": {"from": one["metadata"]["name"]}}
            one["spec"]["config"] = [{"opaque": parameters}]
    return made


# --- claims ---


def expression(dice: Dice, class_name: str) -> str:
    texts = {"nic": NIC_SELECTORS, "any": ANY_SELECTORS}.get(class_name, GPU_SELECTORS)
    if dice.chance(0.03):
        texts = GPU_SELECTORS + NIC_SELECTORS
    if dice.rarely(0.15):
        texts = ODD_SELECTORS
    if dice.rarely(0.01):
        texts = WRONG_SELECTORS
    values = {"{model}": dice.choice(list(MODELS)), "{letter}": dice.choice("ahlt"), "{bit}": str(dice.randrange(2))}
    values |= {"{number}": str(dice.randint(1, 6)), "{speed}": str(dice.choice((10, 25, 100)))}
    values["{memory}"] = dice.choice(list(MODELS.values()))
    text = dice.choice(texts)
    for name, value in values.items():
        text = text.replace(name, value)
    return text


def toleration(dice: Dice) -> Json:
    made: list[Json] = [
        {"operator": "Exists"},
        {"key": "dirty", "operator": "Exists", "effect": "NoSchedule"},
        {"key": "slow", "operator": "Equal", "value": "yes"},
    ]
    if dice.wide:
        made += [{"key": "slow", "value": "maybe"}, {"operator": "Exists", "effect": "NoExecute"}]
    return dice.choice(made)


def ask(dice: Dice, made: Devices) -> Json:
    name = dice.choice(("gpu", "gpu", "gpu", "big-gpu", "nic", "any"))
    if dice.chance(0.01):
        name = "nope"
    asked: Json = {"deviceClassName": name}
    if dice.chance(0.5):
        many = 1 if dice.chance(0.8) else 2
        asked["selectors"] = [{"cel": {"expression": expression(dice, name)}} for _ in range(many)]
    if dice.chance(0.12):
        asked["allocationMode"] = "All"
    elif not dice.rarely(0.1):
        count = dice.choice((1, 1, 1, 1, 2, 3, 4)) if not dice.rarely(0.02) else dice.choice((0, 31, 32, 33))
        asked |= {"allocationMode": "ExactCount", "count": count or 1}
    if dice.chance(made.taints):
        asked["tolerations"] = [toleration(dice)]
    if dice.chance(made.parts):
        amount = dice.choice(("1Gi", "3Gi", "8Gi", "12Gi", "20Gi"))
        if dice.rarely(0.3):
            amount = dice.choice(("0", "1", "1500M", "2.5Gi", "4097Mi", "17Gi", "100Gi"))
        asked["capacity"] = {"requests": {"memory": amount}}
        if dice.rarely(0.1):
            asked["capacity"]["requests"]["slots"] = dice.choice(("1", "500m", "3"))
    return asked


def request(dice: Dice, made: Devices, number: int) -> Json:
    if dice.chance(0.2):
        many = dice.choice((2, 3)) if not dice.rarely(0.1) else dice.randint(1, 6)
        alternatives = [{"name": f"s{i}"} | ask(dice, made) for i in range(many)]
        return {"name": f"r{number}", "firstAvailable": alternatives}
    asked = ask(dice, made)
    if dice.chance(0.02) or dice.rarely(0.03):
        asked["adminAccess"] = True
    return {"name": f"r{number}", "exactly": asked}


def constraint(dice: Dice, requests: Sequence[Json]) -> Json:
    attributes = MATCHED if not dice.rarely(0.2) else (*MATCHED, "nic.example.com/rail", "none.example.com/none")
    made: Json = {dice.choice(("matchAttribute",) * 4 + ("distinctAttribute",)): dice.choice(attributes)}
    if dice.chance(0.8):
        made["requests"] = [one["name"] for one in dice.some(requests, 1, 3)]
        first = requests[0]
        if dice.rarely(0.2) and "firstAvailable" in first:
            made["requests"] = [f"{first['name']}/{dice.choice(first['firstAvailable'])['name']}"]
    return made


def claim_spec(dice: Dice, made: Devices) -> Json:
    requests = [request(dice, made, number) for number in range(dice.choice((1, 1, 1, 2, 2, 3)))]
    devices: Json = {"requests": requests}
    if dice.chance(0.3):
        devices["constraints"] = [constraint(dice, requests) for _ in range(1 if dice.chance(0.8) else 2)]
    if dice.rarely(0.1):
        devices["config"] = [{"opaque": {"driver": GPU, "parameters": {"mode": "a"}}}]
        if dice.chance(0.5):
            devices["config"][0]["requests"] = [one["name"] for one in dice.some(requests, 1, 2)]
    return {"devices": devices}


def claim(name: str, namespace: str, spec: Json) -> Json:
    metadata: Json = {"name": name, "namespace": namespace, "uid": f"cu-{name}", "creationTimestamp": CREATED}
    return {"apiVersion": API, "kind": "ResourceClaim", "metadata": metadata, "spec": spec}


def give(dice: Dice, made: Devices, one: Json, users: Sequence[Json]) -> None:
    """The claim has a device that nobody else has, if there is one."""
    free = [known for known in made.known if "taken" not in known[4]]
    if not free:
        return
    node, driver, pool_name, name, device = dice.choice(free)
    result: Json = {"request": "r0", "driver": driver, "pool": pool_name, "device": name}
    if device.get("allowMultipleAllocations"):
        result["shareID"] = f"00000000-0000-4000-8000-{abs(hash_of(one['metadata']['name'])):012d}"
        if "capacity" in device:
            result["consumedCapacity"] = {"memory": dice.choice(("2Gi", "4Gi", "8Gi"))}
    elif dice.rarely(0.1):
        result["adminAccess"] = True
    else:
        device["taken"] = True
    if "bindingConditions" in device:
        result |= {key: device[key] for key in ("bindingConditions", "bindingFailureConditions")}
    one["spec"] = {"devices": {"requests": [{"name": "r0", "exactly": {"deviceClassName": "any", "count": 1}}]}}
    if dice.rarely(0.3):
        alternatives = [{"name": f"s{i}", "deviceClassName": "any"} for i in range(3)]
        one["spec"]["devices"]["requests"] = [{"name": "r0", "firstAvailable": alternatives}]
        result["request"] = f"r0/s{dice.randrange(3)}"
    allocation: Json = {"devices": {"results": [result]}}
    if node:
        here = {"key": "metadata.name", "operator": "In", "values": [node]}
        allocation["nodeSelector"] = {"nodeSelectorTerms": [{"matchFields": [here]}]}
    one["metadata"]["finalizers"] = [FINALIZER]
    one["status"] = {"allocation": allocation}
    if "bindingConditions" in device and dice.chance(0.6):
        report(dice, one["status"], result)
    reserved = dice.some(users, 1, 2) if users and dice.chance(0.3) else []
    if reserved:
        one["status"]["reservedFor"] = [
            {"resource": "pods", "name": pod["metadata"]["name"], "uid": pod["metadata"]["uid"]} for pod in reserved
        ]


def report(dice: Dice, status: Json, result: Json) -> None:
    """The driver says how far the device is."""
    kind = dice.choice(("example.com/attached", "example.com/failed"))
    told = {"type": kind, "status": dice.choice(("True", "False")), "reason": "Told", "message": "told"}
    told["lastTransitionTime"] = CREATED
    whose = {key: result[key] for key in ("driver", "pool", "device")}
    status["devices"] = [whose | {"conditions": [told]}]


def hash_of(text: str) -> int:
    return sum((at + 1) * ord(letter) for at, letter in enumerate(text)) % 10**9


# --- pods ---


def use(pod: Json, entries: Sequence[Json]) -> None:
    pod["spec"]["resourceClaims"] = list(entries)
    resources = pod["spec"]["containers"][0].setdefault("resources", {})
    resources["claims"] = [{"name": entry["name"]} for entry in entries]


def want_claims(dice: Dice, made: Devices, pod: Json, number: int, shared: Sequence[Json]) -> Iterator[Json]:
    """The pod names some claims, of its own or shared; those of its own are made."""
    namespace = pod["metadata"]["namespace"]
    entries: list[Json] = []
    usable = [one for one in shared if one["metadata"]["namespace"] == namespace]
    for index in range(dice.choice((1, 1, 1, 2)) if not dice.rarely(0.1) else 3):
        entry: Json = {"name": f"x{index}"}
        entries.append(entry)
        if usable and dice.chance(0.3):
            entry["resourceClaimName"] = dice.choice(usable)["metadata"]["name"]
            continue
        if dice.chance(0.015):
            entry["resourceClaimName"] = "absent"
            continue
        name = f"c{number}-{index}"
        own = claim(name, namespace, claim_spec(dice, made))
        if dice.chance(0.03):
            own["metadata"] |= {"deletionTimestamp": "2026-01-10T00:00:00Z", "finalizers": [FINALIZER]}
        if dice.rarely(0.4):
            entry["resourceClaimTemplateName"] = "template"
            if not generated(dice, pod, entry, own):
                continue
        else:
            entry["resourceClaimName"] = name
        yield own
    use(pod, entries)


def generated(dice: Dice, pod: Json, entry: Json, own: Json) -> bool:
    """The claim is made from a template for the pod; false if it is not made yet, or need not be."""
    statuses = pod["status"].setdefault("resourceClaimStatuses", [])
    if dice.chance(0.04):
        if dice.chance(0.5):
            statuses.append({"name": entry["name"]})
        return False
    statuses.append({"name": entry["name"], "resourceClaimName": own["metadata"]["name"]})
    owner = {"apiVersion": "v1", "kind": "Pod", "name": pod["metadata"]["name"], "uid": pod["metadata"]["uid"]}
    own["metadata"]["ownerReferences"] = [owner | {"controller": True}]
    if dice.chance(0.03):
        own["metadata"]["ownerReferences"][0]["uid"] = "u-other"
    return True


def want_extended(dice: Dice, pod: Json) -> None:
    """Some containers ask for extended resources."""
    implicit = [IMPLICIT + name for name in ("nic", "gpu", "any")]
    names = (g.GPU, g.GPU, g.GPU, g.FOO, *implicit) if dice.wide else (g.GPU,)
    containers = [*pod["spec"].get("initContainers", ()), *pod["spec"]["containers"]]
    for container in dice.some(containers, 1, len(containers)):
        amounts = {dice.choice(names): str(dice.choice((1, 1, 2, 4))) for _ in range(1 if not dice.rarely(0.2) else 2)}
        resources = container.setdefault("resources", {})
        resources.setdefault("requests", {}).update(amounts)
        resources.setdefault("limits", {}).update(amounts)


def left_over(dice: Dice, pod: Json) -> Json:
    """A claim for extended resources that an earlier attempt made."""
    name, namespace = f"{pod['metadata']['name']}-extended-resources-x", pod["metadata"]["namespace"]
    asked = {"name": "container-0-request-0", "exactly": {"deviceClassName": "gpu", "count": 1}}
    made = claim(name, namespace, {"devices": {"requests": [asked]}})
    owner = {"apiVersion": "v1", "kind": "Pod", "name": pod["metadata"]["name"], "uid": pod["metadata"]["uid"]}
    made["metadata"] |= {"annotations": {EXTENDED: "true"}, "ownerReferences": [owner | {"controller": True}]}
    return made


# --- clusters ---

FAMILIES = ("dra", "drashared", "draparts", "draextended")


def devices_of(dice: Dice, family: str, version: str) -> Devices:
    made = Devices(version)
    shared = family == "drashared" or dice.rarely(0.2)
    made.taints = 0.15 if shared else 0.0
    made.broken = 0.06 if shared else 0.0
    made.parts = 0.3 if family == "draparts" or dice.rarely(0.2) else 0.0
    return made


def furnish(dice: Dice, family: str, version: str, nodes: int, pending: list[Json]) -> list[Json]:
    """Gives a cluster devices, and its pods claims; the objects that are new."""
    made = devices_of(dice, family, version)
    extended = family == "draextended" or dice.rarely(0.3)
    objects = [*slices(dice, made, nodes), *classes(dice, extended=extended)]
    if version != "1.36" and dice.rarely(0.3):
        objects += taint_rules(dice)
    shared = [
        claim(f"s{number}", dice.choice(("default", "prod", "dev")), claim_spec(dice, made))
        for number in range(dice.randint(0, 4))
    ]
    taken = shared if family in ("drashared", "draparts") or dice.rarely(0.5) else []
    for one in taken:
        if dice.chance(0.7):
            give(dice, made, one, pending if dice.rarely(0.3) else [])
    objects += shared
    for number, pod in enumerate(pending):
        if extended and dice.chance(0.5):
            want_extended(dice, pod)
            if dice.rarely(0.03):
                objects.append(left_over(dice, pod))
            if not dice.rarely(0.3):
                continue
        if dice.chance(0.8):
            objects += want_claims(dice, made, pod, number, shared)
    for _, _, _, _, device in made.known:
        device.pop("taken", None)
    return objects


def roomy(node: Json) -> None:
    """Devices, not amounts, are to decide."""
    node["status"].setdefault("allocatable", {}).update({"cpu": "64", "memory": "256Gi", "pods": "110"})


def scenario(family: str, wide: bool, seed: str, index: int, version: str = "1.36") -> Json:
    dice = Dice(f"{family}/{seed}/{index}")
    dice.wide = wide
    nodes = dice.randint(3, 10) if not dice.rarely(0.05) else 1
    zone_names = g.ZONES[: dice.choice((1, 2, 3, 4))]
    objects = [g.node(dice, i, zone_names, 0.1, preempt=False) for i in range(nodes)]
    for one in objects:
        roomy(one)
        if family == "draextended" and dice.chance(0.6):
            one["status"]["allocatable"].pop(g.GPU, None)
            if dice.chance(0.3):
                one["status"]["allocatable"][g.GPU] = "0"
    objects += g.namespaces(dice)
    rates = {"tolerations": 0.3} if not wide else dict.fromkeys(g.PENDING_RATES, g.WIDE_RATE) | {"volumes": 0.0}
    bound = [g.bound_pod(dice, i, nodes, {}, {}) for i in range(dice.randint(0, nodes))]
    pending = [g.pod(dice, f"p{i}", nodes, rates, {}) for i in range(dice.randint(4, 9))]
    objects += bound
    objects += furnish(dice, family, version, nodes, pending)
    made: Json = {"id": f"{family}-{seed.replace('/', '-')}-{index}", "objects": objects, "pending": pending}
    if family != "drashared":
        made["sequence"] = True
    if dice.rarely(0.25):
        made["config"] = configuration(dice)
    return made


def configuration(dice: Dice) -> Json:
    """Strategies that count devices."""
    names = dice.some((g.GPU, g.FOO, IMPLICIT + "gpu", IMPLICIT + "any", "cpu", "memory"), 1, 4)
    strategy: Json = {"type": dice.choice(("LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"))}
    strategy["resources"] = [{"name": name, "weight": dice.randint(1, 5)} for name in names]
    if strategy["type"] == "RequestedToCapacityRatio":
        strategy["requestedToCapacityRatio"] = {"shape": g.shape(dice)}
    config = [g.plugin_args("NodeResourcesFit", {"scoringStrategy": strategy})]
    if dice.chance(0.5):
        balanced = [{"name": name, "weight": 1} for name in dice.some(("cpu", "memory", IMPLICIT + "any"), 1, 3)]
        config.append(g.plugin_args("NodeResourcesBalancedAllocation", {"resources": balanced}))
    profile: Json = {"schedulerName": "default-scheduler", "pluginConfig": config}
    return {"apiVersion": g.CONFIG_VERSION, "kind": "KubeSchedulerConfiguration", "profiles": [profile]}


def spare(cluster: Json) -> None:
    """Take out what ends kube-scheduler: balancing a resource that a class with selectors serves."""
    for profile in cluster.get("config", {}).get("profiles", ()):
        if "pluginConfig" in profile:
            balanced = "NodeResourcesBalancedAllocation"
            profile["pluginConfig"] = [one for one in profile["pluginConfig"] if one["name"] != balanced]
