"""`situate check`: what it finds in workloads, what it says about it, and how it ends."""

import json
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from builders import manifest
from situate.cli import main
from situate.cli.commands.check.rules import RULES

HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
OWN = {"labelSelector": {"matchLabels": {"app": "web"}}}
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def node(name: str, *, cpu: str = "4", zone: str = "a", **fields: Any) -> dict[str, Any]:
    room = {"cpu": cpu, "memory": "16Gi", "pods": "10"}
    labels = {HOST: name, ZONE: zone} | fields.pop("labels", {})
    return manifest("Node", name, metadata={"labels": labels}, status={"allocatable": room}, spec=fields)


def spec_of(cpu: str = "1", **spec: Any) -> dict[str, Any]:
    resources = {"requests": {"cpu": cpu, "memory": "1Gi"}, "limits": {"memory": "1Gi"}}
    return {"containers": [{"name": "c", "image": "web:1", "resources": resources}], **spec}


def deployment(name: str = "web", *, replicas: int = 1, spec: Any = None, kind: str = "Deployment") -> dict[str, Any]:
    template = {"metadata": {"labels": {"app": name}}, "spec": spec or spec_of()}
    body = {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": template}
    return manifest(kind, name, spec=body) | {"apiVersion": "apps/v1"}


def budget(**spec: Any) -> dict[str, Any]:
    return manifest("PodDisruptionBudget", "b", spec={"selector": {"matchLabels": {"app": "web"}}, **spec})


def apart(key: str = HOST) -> dict[str, Any]:
    return {"podAntiAffinity": {REQUIRED: [OWN | {"topologyKey": key}]}}


def near(app: str) -> dict[str, Any]:
    term = {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": ZONE}
    return {"podAffinity": {REQUIRED: [term]}}


def on_nodes(*expressions: tuple[str, str, list[str]]) -> dict[str, Any]:
    wanted = [{"key": key, "operator": operator, "values": values} for key, operator, values in expressions]
    return {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": wanted}]}}}


def spread(key: str, **fields: Any) -> list[dict[str, Any]]:
    return [{"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule", **OWN, **fields}]


def check(*objects: dict[str, Any], arguments: tuple[str, ...] = ()) -> Result:
    data = yaml.safe_dump_all(objects)
    return CliRunner().invoke(main, ["check", "-f", "-", *arguments], input=data, catch_exceptions=False)


def found(*objects: dict[str, Any], arguments: tuple[str, ...] = ()) -> list[dict[str, Any]]:
    result = check(*objects, arguments=("-o", "json", *arguments))
    assert result.exit_code in (0, 1), result.output
    return list(json.loads(result.stdout)["findings"])


NODES = [node("n1"), node("n2", zone="b")]
BARE = {"containers": [{"name": "c", "image": "web:1"}]}
TAINT = {"key": "k", "effect": "NoSchedule"}


@pytest.mark.parametrize(
    "code, field, objects",
    [
        pytest.param(
            "SIT001",
            "spec.template.spec.containers[c].resources.requests",
            [deployment(spec=BARE)],
            id="a container that asks for nothing",
        ),
        pytest.param(
            "SIT002",
            "spec.template.spec.containers[c].resources.limits",
            [deployment(spec=BARE)],
            id="a container without a memory limit",
        ),
        pytest.param(
            "SIT003",
            "spec.template.spec.containers[*].resources.requests.cpu",
            [*NODES, deployment(spec=spec_of("5"))],
            id="more than any node has",
        ),
        pytest.param(
            "SIT004",
            "spec.template.spec.nodeName",
            [deployment(spec=spec_of(nodeName="n1"))],
            id="a node named by hand",
        ),
        pytest.param(
            "SIT005",
            "spec.template.spec.topologySpreadConstraints",
            [deployment(replicas=3)],
            id="replicas that nothing keeps apart",
        ),
        pytest.param(
            "SIT006",
            "spec.template.spec.nodeSelector",
            [*NODES, deployment(spec=spec_of(nodeSelector={HOST: "n1"}))],
            id="a selector that one node matches",
        ),
        pytest.param(
            "SIT007",
            "spec.template.spec.nodeSelector",
            [*NODES, deployment(spec=spec_of(nodeSelector={"disk": "ssd"}))],
            id="a selector that no node matches",
        ),
        pytest.param(
            "SIT007",
            f"spec.template.spec.affinity.nodeAffinity.{REQUIRED}",
            [deployment(spec=spec_of(affinity=on_nodes(("disk", "In", ["ssd"]), ("disk", "NotIn", ["ssd"]))))],
            id="an affinity that contradicts itself",
        ),
        pytest.param(
            "SIT007",
            f"spec.template.spec.affinity.podAffinity.{REQUIRED}[0]",
            [deployment(spec=spec_of(affinity=near("db")))],
            id="company that nobody makes",
        ),
        pytest.param(
            "SIT007",
            f"spec.template.spec.affinity.podAntiAffinity.{REQUIRED}[0]",
            [*NODES, deployment(replicas=3, spec=spec_of(affinity=apart()))],
            id="replicas that shun each other on too few nodes",
        ),
        pytest.param("SIT008", "spec.maxUnavailable", [budget(maxUnavailable=0)], id="a budget that lets nobody go"),
        pytest.param(
            "SIT008",
            "spec.minAvailable",
            [deployment(replicas=2, spec=spec_of(affinity=apart())), budget(minAvailable=2)],
            id="a budget of as many as there are",
        ),
        pytest.param(
            "SIT008",
            "spec.minAvailable",
            [deployment(), budget(minAvailable="51%")],
            id="a budget of a percentage that comes to all",
        ),
        pytest.param(
            "SIT009",
            "spec.template.spec.topologySpreadConstraints[0].topologyKey",
            [*NODES, deployment(spec=spec_of(topologySpreadConstraints=spread("rack")))],
            id="a spread by a label that no node has",
        ),
        pytest.param(
            "SIT009",
            "spec.template.spec.topologySpreadConstraints[0].minDomains",
            [*NODES, deployment(replicas=3, spec=spec_of(topologySpreadConstraints=spread(ZONE, minDomains=3)))],
            id="a spread over more domains than there are",
        ),
        pytest.param(
            "SIT010",
            "spec.template.spec.priorityClassName",
            [manifest("PriorityClass", "low", value=1), deployment(spec=spec_of(priorityClassName="gold"))],
            id="a priority class that is not there",
        ),
        pytest.param(
            "SIT011",
            "spec.template.spec.tolerations",
            [node("n1", taints=[TAINT]), deployment()],
            id="taints on every node",
        ),
    ],
)
def test_it_finds(code: str, field: str, objects: list[dict[str, Any]]) -> None:
    told = [one for one in found(*objects) if one["code"] == code]
    assert [one["field"] for one in told] == [field]
    assert told[0]["problem"]
    assert told[0]["change"]
    assert told[0]["file"] == "standard input"


@pytest.mark.parametrize(
    "objects",
    [
        pytest.param([*NODES, deployment()], id="a plain deployment"),
        pytest.param([*NODES, deployment(replicas=2, spec=spec_of(affinity=apart()))], id="two apart on two nodes"),
        pytest.param([*NODES, deployment(spec=spec_of(affinity=near("web")))], id="one that wants its own kind near"),
        pytest.param([deployment(replicas=2, spec=spec_of(affinity=apart())), budget(maxUnavailable=1)], id="a budget"),
        pytest.param([deployment(spec=spec_of(priorityClassName="system-node-critical"))], id="a class of the system"),
        pytest.param([*NODES, deployment(spec=spec_of(topologySpreadConstraints=spread(ZONE)))], id="a spread"),
    ],
)
def test_it_has_nothing_against(objects: list[dict[str, Any]]) -> None:
    assert found(*objects) == []
    assert check(*objects).exit_code == 0


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet", "ReplicaSet", "DaemonSet"])
def test_the_templates_of_workloads_are_checked(kind: str) -> None:
    (one,) = [each for each in found(deployment(kind=kind, spec=BARE)) if each["code"] == "SIT001"]
    assert one["object"] == f"{kind} default/web"


def test_the_template_in_a_cron_job_is_found() -> None:
    inner = {"spec": {"template": {"spec": BARE}}}
    job = manifest("CronJob", "nightly", spec={"schedule": "0 0 * * *", "jobTemplate": inner})
    (one,) = [each for each in found(job | {"apiVersion": "batch/v1"}) if each["code"] == "SIT001"]
    assert one["field"] == "spec.jobTemplate.spec.template.spec.containers[c].resources.requests"


def test_pods_that_a_workload_made_are_not_told_again() -> None:
    owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "web", "controller": True, "uid": "u"}
    pods = [manifest("Pod", f"web-{n}", metadata={"ownerReferences": [owner]}, spec=BARE) for n in range(2)]
    assert [one["object"] for one in found(deployment(kind="StatefulSet"), *pods)] == []
    assert {one["object"] for one in found(*pods)} == {"Pod default/web-0"}


# ── how it ends ─────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "arguments, code",
    [
        pytest.param((), 0, id="warnings are no failure"),
        pytest.param(("--fail-on", "warning"), 1, id="unless they are to be"),
        pytest.param(("--fail-on", "warning", "--ignore", "SIT001,SIT002"), 0, id="what is ignored does not count"),
    ],
)
def test_the_exit_code_for_warnings(arguments: tuple[str, ...], code: int) -> None:
    assert check(deployment(spec=BARE), arguments=arguments).exit_code == code


def test_errors_are_a_failure_unless_nothing_is() -> None:
    assert check(budget(maxUnavailable=0)).exit_code == 1
    assert check(budget(maxUnavailable=0), arguments=("--fail-on", "never")).exit_code == 0


def test_for_people_it_is_the_object_the_field_and_the_change() -> None:
    lines = check(deployment(spec=spec_of(nodeName="n1"))).stdout.splitlines()
    assert lines == [
        "warning SIT004 Deployment default/web spec.template.spec.nodeName (standard input)",
        "    is set to n1: no scheduler checks whether it fits there",
        "    → remove it; to prefer or require nodes, use affinity.nodeAffinity",
        "1 workload: 0 errors, 1 warning, 0 infos",
    ]


def test_a_dump_with_missing_kinds_says_which_and_what_it_cannot_judge() -> None:
    stderr = check(deployment(spec=spec_of(priorityClassName="gold"))).stderr
    assert stderr.splitlines() == [
        "note: the input has no Node: SIT003, SIT006, SIT009, SIT011 and part of SIT007 are not checked",
        "note: the input has no PriorityClass: SIT010 is not checked for gold",
    ]


@pytest.mark.parametrize(
    "text, arguments, line",
    [
        pytest.param("kind: Pod", (), "standard input: apiVersion: Required value", id="no version"),
        pytest.param(
            "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}",
            (),
            "standard input: Deployment default/web: spec.template: Required value",
            id="no template",
        ),
        pytest.param("- 1", (), "standard input: expected an object", id="no object"),
        pytest.param(
            "apiVersion: v1\nkind: Pod\nmetadata: {name: web}",
            ("--ignore", "SIT999"),
            "--ignore SIT999: unknown code; use SIT001 to SIT017",
            id="a code that is none",
        ),
    ],
)
def test_bad_input_is_one_line(text: str, arguments: tuple[str, ...], line: str) -> None:
    result = CliRunner().invoke(main, ["check", "-f", "-", *arguments], input=text, catch_exceptions=False)
    assert (result.exit_code, result.stderr.splitlines()) == (2, [f"error: {line}"])


def test_an_object_that_is_there_twice_is_one_line() -> None:
    result = check(deployment(), deployment())
    told = 'error: standard input: Deployment web: metadata.name: Duplicate value: "web": already in standard input'
    assert (result.exit_code, result.stderr.splitlines()) == (2, [told])


def test_codes_are_numbered_without_gaps() -> None:
    assert [rule.code for rule in RULES] == [f"SIT{number:03}" for number in range(1, len(RULES) + 1)]
