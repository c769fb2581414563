"""What is wrong with an object is said in Kubernetes' words, with the path of the field."""

import gzip
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from builders import manifest
from situate.core.model.base import Model
from situate.core.model.pod import Pod
from situate.core.model.validate import first_problem, problems_of
from situate.wire.objects import KINDS

CONFORMANCE = Path(__file__).parents[2] / "conformance" / "data"


def made(kind: str, fields: dict[str, Any]) -> Model:
    return msgspec.convert(manifest(kind, "x", **fields), KINDS[kind][1])


def pod(**spec: Any) -> dict[str, Any]:
    return {"spec": {"containers": [{"name": "c"}], **spec}}


def resources(**lists: Any) -> dict[str, Any]:
    return pod(containers=[{"name": "c", "resources": lists}])


def node_affinity(*terms: Any) -> dict[str, Any]:
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}}
    return pod(affinity={"nodeAffinity": required})


def expression(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


def apart(**term: Any) -> dict[str, Any]:
    return pod(
        affinity={
            "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "zone", **term}]}
        }
    )


def spread(**constraint: Any) -> dict[str, Any]:
    one = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", **constraint}
    return pod(topologySpreadConstraints=[one])


REQUIRED = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution"
APART = "spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[0]"
REQUESTS = "spec.containers[0].resources.requests"
QUANTITY = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"

PODS = [
    ("a pod without containers", {"spec": {}}, "spec.containers: Required value"),
    ("a container without a name", pod(containers=[{}]), "spec.containers[0].name: Required value"),
    (
        "two containers of one name",
        pod(containers=[{"name": "a"}, {"name": "a"}]),
        'spec.containers[1].name: Duplicate value: "a"',
    ),
    (
        "an init container named as a container",
        pod(initContainers=[{"name": "c"}]),
        'spec.initContainers[0].name: Duplicate value: "c"',
    ),
    (
        "a request that is no quantity",
        resources(requests={"cpu": "lots"}),
        f'{REQUESTS}.cpu: Invalid value: "lots": {QUANTITY}',
    ),
    (
        "a request with an absurd exponent",
        resources(requests={"memory": "1e100000000"}),
        f'{REQUESTS}.memory: Invalid value: "1e100000000": quantity\'s exponent must be between -30 and 30',
    ),
    (
        "a negative request",
        resources(requests={"cpu": "-1"}),
        f'{REQUESTS}.cpu: Invalid value: "-1": must be greater than or equal to 0',
    ),
    (
        "a negative number",
        resources(limits={"cpu": -0.5}),
        "spec.containers[0].resources.limits.cpu: Invalid value: -0.5: must be greater than or equal to 0",
    ),
    (
        "half a device",
        resources(requests={"nvidia.com/gpu": "500m"}),
        f'{REQUESTS}[nvidia.com/gpu]: Invalid value: "500m": must be an integer',
    ),
    (
        "a request above its limit",
        resources(requests={"cpu": "2"}, limits={"cpu": "1"}),
        f'{REQUESTS}: Invalid value: "2": must be less than or equal to cpu limit of 1',
    ),
    (
        "devices requested and limited differently",
        resources(requests={"a.com/b": "1"}, limits={"a.com/b": "2"}),
        f'{REQUESTS}: Invalid value: "1": must be equal to a.com/b limit of 2',
    ),
    (
        "a resource that is none",
        resources(requests={"cpus": "1"}),
        f'{REQUESTS}.cpus: Invalid value: "cpus": must be a standard resource for containers',
    ),
    (
        "a resource of a quota",
        resources(requests={"requests.a.com/b": "1"}),
        (
            f'{REQUESTS}[requests.a.com/b]: Invalid value: "requests.a.com/b": '
            "doesn't follow extended resource name standard"
        ),
    ),
    (
        "a pod-level device",
        pod(resources={"requests": {"a.com/b": "1"}}),
        (
            'spec.resources.requests[a.com/b]: Unsupported value: "a.com/b": '
            'supported values: "cpu", "hugepages-", "memory"'
        ),
    ),
    (
        "overhead that is no quantity",
        pod(overhead={"cpu": ""}),
        f'spec.overhead.cpu: Invalid value: "": {QUANTITY}',
    ),
    (
        "a port that is none",
        pod(containers=[{"name": "c", "ports": [{"containerPort": 70000}]}]),
        "spec.containers[0].ports[0].containerPort: Invalid value: 70000: must be between 1 and 65535, inclusive",
    ),
    (
        "a missing port",
        pod(containers=[{"name": "c", "ports": [{"hostPort": 80}]}]),
        "spec.containers[0].ports[0].containerPort: Required value",
    ),
    (
        "a negative host port",
        pod(containers=[{"name": "c", "ports": [{"containerPort": 80, "hostPort": -1}]}]),
        "spec.containers[0].ports[0].hostPort: Invalid value: -1: must be between 1 and 65535, inclusive",
    ),
    (
        "a protocol that is none",
        pod(containers=[{"name": "c", "ports": [{"containerPort": 80, "protocol": "HTTP"}]}]),
        'spec.containers[0].ports[0].protocol: Unsupported value: "HTTP": supported values: "SCTP", "TCP", "UDP"',
    ),
    (
        "In without values",
        node_affinity(expression("disk", "In")),
        (
            f"{REQUIRED}.nodeSelectorTerms[0].matchExpressions[0].values: "
            "Required value: must be specified when `operator` is 'In' or 'NotIn'"
        ),
    ),
    (
        "Exists with values",
        node_affinity(expression("disk", "Exists", "ssd")),
        (
            f"{REQUIRED}.nodeSelectorTerms[0].matchExpressions[0].values: "
            "Forbidden: may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
        ),
    ),
    (
        "Gt of two values",
        node_affinity(expression("cores", "Gt", "1", "2")),
        (
            f"{REQUIRED}.nodeSelectorTerms[0].matchExpressions[0].values: "
            "Required value: must be specified single value when `operator` is 'Lt' or 'Gt'"
        ),
    ),
    (
        "an operator that is none",
        node_affinity(expression("disk", "Is", "ssd")),
        (
            f'{REQUIRED}.nodeSelectorTerms[0].matchExpressions[0].operator: Invalid value: "Is": '
            "not a valid selector operator"
        ),
    ),
    (
        "a node selector without terms",
        node_affinity(),
        f"{REQUIRED}.nodeSelectorTerms: Required value: must have at least one node selector term",
    ),
    (
        "a field selector of two values",
        node_affinity({"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["a", "b"]}]}),
        (
            f"{REQUIRED}.nodeSelectorTerms[0].matchFields[0].values: Required value: "
            "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
        ),
    ),
    (
        "a field that nodes do not have",
        node_affinity({"matchFields": [{"key": "metadata.uid", "operator": "In", "values": ["a"]}]}),
        (
            f'{REQUIRED}.nodeSelectorTerms[0].matchFields[0].key: Invalid value: "metadata.uid": '
            "not a valid field selector key"
        ),
    ),
    (
        "a preferred term of weight 0",
        pod(
            affinity={
                "nodeAffinity": {
                    "preferredDuringSchedulingIgnoredDuringExecution": [
                        {"weight": 0, "preference": expression("a", "Exists")}
                    ]
                }
            }
        ),
        (
            "spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight: "
            "Invalid value: 0: must be in the range 1-100"
        ),
    ),
    ("no topology key", apart(topologyKey=""), f"{APART}.topologyKey: Required value: can not be empty"),
    (
        "a label selector that compares",
        apart(labelSelector=expression("a", "Gt", "1")),
        f'{APART}.labelSelector.matchExpressions[0].operator: Invalid value: "Gt": not a valid selector operator',
    ),
    (
        "a namespace selector without values",
        apart(namespaceSelector=expression("a", "NotIn")),
        (
            f"{APART}.namespaceSelector.matchExpressions[0].values: "
            "Required value: must be specified when `operator` is 'In' or 'NotIn'"
        ),
    ),
    (
        "a toleration of every key that is not Exists",
        pod(tolerations=[{"operator": "Equal", "value": "x"}]),
        (
            'spec.tolerations[0].operator: Invalid value: "Equal": '
            'operator must be Exists when `key` is empty, which means "match all values and all keys"'
        ),
    ),
    (
        "Exists with a value",
        pod(tolerations=[{"key": "a", "operator": "Exists", "value": "x"}]),
        "spec.tolerations[0].operator: Invalid value: \"x\": value must be empty when `operator` is 'Exists'",
    ),
    (
        "seconds of a toleration that does not evict",
        pod(tolerations=[{"key": "a", "operator": "Exists", "effect": "NoSchedule", "tolerationSeconds": 5}]),
        (
            'spec.tolerations[0].effect: Invalid value: "NoSchedule": '
            "effect must be 'NoExecute' when `tolerationSeconds` is set"
        ),
    ),
    (
        "a toleration operator that is none",
        pod(tolerations=[{"key": "a", "operator": "Like"}]),
        'spec.tolerations[0].operator: Unsupported value: "Like": supported values: "Equal", "Exists"',
    ),
    (
        "an effect that is none",
        pod(tolerations=[{"key": "a", "operator": "Exists", "effect": "Never"}]),
        (
            'spec.tolerations[0].effect: Unsupported value: "Never": '
            'supported values: "NoSchedule", "PreferNoSchedule", "NoExecute"'
        ),
    ),
    (
        "no skew",
        spread(maxSkew=0),
        "spec.topologySpreadConstraints[0].maxSkew: Invalid value: 0: must be greater than zero",
    ),
    (
        "an action that is none",
        spread(whenUnsatisfiable="Maybe"),
        (
            'spec.topologySpreadConstraints[0].whenUnsatisfiable: Unsupported value: "Maybe": '
            'supported values: "DoNotSchedule", "ScheduleAnyway"'
        ),
    ),
    (
        "minDomains of a wish",
        spread(whenUnsatisfiable="ScheduleAnyway", minDomains=2),
        (
            "spec.topologySpreadConstraints[0].minDomains: Invalid value: 2: "
            "can only use minDomains if whenUnsatisfiable=DoNotSchedule, not ScheduleAnyway"
        ),
    ),
    (
        "a policy that is none",
        spread(nodeTaintsPolicy="Obey"),
        (
            'spec.topologySpreadConstraints[0].nodeTaintsPolicy: Unsupported value: "Obey": '
            'supported values: "Honor", "Ignore"'
        ),
    ),
    (
        "one constraint twice",
        pod(
            topologySpreadConstraints=[
                {"maxSkew": skew, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"} for skew in (1, 2)
            ]
        ),
        'spec.topologySpreadConstraints[1].{topologyKey, whenUnsatisfiable}: Duplicate value: "{zone, DoNotSchedule}"',
    ),
    (
        "a claim without a name",
        pod(volumes=[{"name": "v", "persistentVolumeClaim": {}}]),
        "spec.volumes[0].persistentVolumeClaim.claimName: Required value",
    ),
    (
        "a preemption policy that is none",
        pod(preemptionPolicy="Always"),
        'spec.preemptionPolicy: Unsupported value: "Always": supported values: "PreemptLowerPriority", "Never"',
    ),
    (
        "a start that is no time",
        {**pod(), "status": {"startTime": "yesterday"}},
        'status.startTime: Invalid value: "yesterday": cannot parse "yesterday" as an RFC 3339 time',
    ),
    (
        "a resize of no quantity",
        {**pod(), "status": {"containerStatuses": [{"name": "c", "allocatedResources": {"cpu": "x"}}]}},
        f'status.containerStatuses[0].allocatedResources.cpu: Invalid value: "x": {QUANTITY}',
    ),
    ("no name", {**pod(), "metadata": {"name": ""}}, "metadata.name: Required value"),
]

OTHERS = [
    (
        "a node's room that is no quantity",
        "Node",
        {"status": {"allocatable": {"memory": "64GB"}}},
        f'status.allocatable.memory: Invalid value: "64GB": {QUANTITY}',
    ),
    (
        "a node of negative capacity",
        "Node",
        {"status": {"capacity": {"pods": "-1"}}},
        'status.capacity.pods: Invalid value: "-1": must be greater than or equal to 0',
    ),
    ("a taint without effect", "Node", {"spec": {"taints": [{"key": "a"}]}}, "spec.taints[0].effect: Required value"),
    (
        "a taint of an unknown effect",
        "Node",
        {"spec": {"taints": [{"key": "a", "effect": "Later"}]}},
        (
            'spec.taints[0].effect: Unsupported value: "Later": '
            'supported values: "NoSchedule", "PreferNoSchedule", "NoExecute"'
        ),
    ),
    (
        "a volume that fits no node",
        "PersistentVolume",
        {"spec": {"nodeAffinity": {"required": {}}}},
        "spec.nodeAffinity.required.nodeSelectorTerms: Required value: must have at least one node selector term",
    ),
    (
        "an access mode that is none",
        "PersistentVolumeClaim",
        {"spec": {"accessModes": ["RWO"]}},
        (
            'spec.accessModes: Unsupported value: "RWO": '
            'supported values: "ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"'
        ),
    ),
    (
        "a claim of no quantity",
        "PersistentVolumeClaim",
        {"spec": {"resources": {"requests": {"storage": "big"}}}},
        f'spec.resources.requests.storage: Invalid value: "big": {QUANTITY}',
    ),
    (
        "a binding mode that is none",
        "StorageClass",
        {"volumeBindingMode": "Later"},
        'volumeBindingMode: Unsupported value: "Later": supported values: "Immediate", "WaitForFirstConsumer"',
    ),
    (
        "a capacity of no quantity",
        "CSIStorageCapacity",
        {"capacity": "1Q"},
        f'capacity: Invalid value: "1Q": {QUANTITY}',
    ),
    (
        "a budget that selects by nothing",
        "PodDisruptionBudget",
        {"spec": {"selector": expression("a", "In")}},
        "spec.selector.matchExpressions[0].values: Required value: must be specified when `operator` is 'In' or",
    ),
    (
        "a replica set whose labels are none",
        "ReplicaSet",
        {"spec": {"selector": {"matchLabels": {"a": "b c"}}}},
        "spec.selector.matchLabels: Invalid value: ",
    ),
    (
        "a class with a policy that is none",
        "PriorityClass",
        {"value": 1, "preemptionPolicy": "Maybe"},
        'preemptionPolicy: Unsupported value: "Maybe": supported values: "PreemptLowerPriority", "Never"',
    ),
    ("a namespace without a name", "Namespace", {"metadata": {"name": ""}}, "metadata.name: Required value"),
    (
        "a service with a name in capitals",
        "Service",
        {"metadata": {"name": "Web"}},
        'metadata.name: Invalid value: "Web": a lowercase RFC 1123 subdomain must consist of',
    ),
]


@pytest.mark.parametrize("fields, says", [pytest.param(fields, says, id=name) for name, fields, says in PODS])
def test_what_is_wrong_with_a_pod(fields: dict[str, Any], says: str) -> None:
    (problem,) = problems_of(made("Pod", fields))
    assert str(problem) == says


@pytest.mark.parametrize(
    "kind, fields, says", [pytest.param(kind, fields, says, id=name) for name, kind, fields, says in OTHERS]
)
def test_what_is_wrong_with_other_objects(kind: str, fields: dict[str, Any], says: str) -> None:
    (problem,) = problems_of(made(kind, fields))
    assert str(problem).startswith(says)
    assert first_problem(made(kind, fields)) == problem


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param(node_affinity(expression("cores", "Gt", "many")), id="Gt of a word"),
        pytest.param(node_affinity({}), id="an empty term"),
        pytest.param(pod(tolerations=[{"key": "a", "operator": "Gt", "value": "5"}]), id="a toleration that compares"),
        pytest.param(pod(containers=[{"name": "c", "ports": [{"containerPort": 1}] * 2}]), id="one port twice"),
        pytest.param(
            pod(
                affinity={
                    "nodeAffinity": {
                        "preferredDuringSchedulingIgnoredDuringExecution": [
                            {"weight": 1, "preference": expression("a", "In", "not a label value")}
                        ]
                    }
                }
            ),
            id="a preferred value that no label can have",
        ),
        pytest.param(resources(requests={"kubernetes.io/x": "1.5"}), id="a resource under kubernetes.io"),
        pytest.param({**pod(), "metadata": {"creationTimestamp": "2026-01-01T00:00:00Z"}}, id="a time"),
    ],
)
def test_what_the_api_server_accepts_is_accepted(fields: dict[str, Any]) -> None:
    assert problems_of(made("Pod", fields)) == []


def test_all_problems_are_found_in_order() -> None:
    broken = made("Pod", pod(containers=[{"resources": {"requests": {"cpu": "x"}}}], tolerations=[{}]))
    assert [problem.path for problem in problems_of(broken)] == [
        "spec.containers[0].name",
        "spec.containers[0].resources.requests.cpu",
        "spec.tolerations[0].operator",
    ]
    assert first_problem(broken) == problems_of(broken)[0]


def test_a_long_value_is_cut_and_stays_on_one_line() -> None:
    problem = first_problem(made("Pod", resources(requests={"cpu": "9\n" * 1000})))
    assert problem is not None
    assert "\n" not in str(problem)
    assert len(str(problem)) < 600


def test_a_driver_may_be_named_in_capitals() -> None:
    assert problems_of(made("CSIDriver", {"metadata": {"name": "Example.com"}})) == []


@pytest.mark.parametrize(
    "path", sorted(CONFORMANCE.glob("*.scenarios.jsonl.gz")), ids=lambda path: path.name.split(".")[0]
)
def test_nothing_is_wrong_with_the_clusters_that_kube_scheduler_judged(path: Path) -> None:
    for line in gzip.decompress(path.read_bytes()).splitlines():
        scenario = json.loads(line)
        for fields in (*scenario["objects"], *scenario["pending"]):
            assert problems_of(msgspec.convert(fields, KINDS[fields["kind"]][1])) == []


def test_there_are_clusters_to_check() -> None:
    assert len(list(CONFORMANCE.glob("*.scenarios.jsonl.gz"))) == 13
    assert KINDS["Pod"][1] is Pod
