"""Devices at the desk: why, plan, place, check and simulate on claims, from files and from a cluster."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from kube.served import served
from situate.cli import main
from situate.cli.input import live
from situate.kube import discovery

EXAMPLES = Path(__file__).parents[3] / "examples" / "devices"
CLUSTER, PENDING, WORKLOAD = (str(EXAMPLES / f"{name}.yaml") for name in ("cluster", "pending", "workload"))
GROUP = "/apis/resource.k8s.io/v1"


def run(*words: str, stdin: str = "") -> Result:
    return CliRunner().invoke(main, [*words], input=stdin, catch_exceptions=False)


def values(*words: str, stdin: str = "") -> dict[str, Any]:
    found: dict[str, Any] = json.loads(run(*words, "-o", "json", stdin=stdin).stdout)
    return found


def documents(*names: str) -> Iterator[dict[str, Any]]:
    for name in names:
        yield from yaml.safe_load_all(Path(name).read_text())


def text_of(*objects: dict[str, Any]) -> str:
    return yaml.safe_dump_all(objects)


def pod(name: str, *, template: str = "", resources: Any = None, **spec: Any) -> dict[str, Any]:
    entries = {"resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": template}]} if template else {}
    requests = {"cpu": "1", "memory": "1Gi", **(resources or {})}
    container = {"name": "c", "image": "i", "resources": {"requests": requests, "limits": requests}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": [container], **entries, **spec},
    }


def template(name: str, *requests: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": name},
        "spec": {"spec": {"devices": {"requests": list(requests)}}},
    }


def asks(count: int = 1, of: str = "gpu.example.com", selector: str = "") -> dict[str, Any]:
    chosen = {"selectors": [{"cel": {"expression": selector}}]} if selector else {}
    return {"name": "gpu", "exactly": {"deviceClassName": of, "count": count, **chosen}}


# ── why ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_holders_and_the_reasons_are_values_for_programs() -> None:
    said = values("why", "infer", "-f", CLUSTER, "-f", PENDING)
    (verdict,) = said["verdicts"]
    (detail,) = verdict["details"]
    found = detail["values"]
    assert (found["claim"], found["request"], found["asked"], found["devices"]) == ("default/infer-gpu", "gpu", 1, 12)
    assert [(one["obstacle"], one["devices"]) for one in found["kept"]] == [
        ("selector", 8),
        ("in use", 3),
        ("taint", 1),
    ]
    assert found["heldBy"] == [{"pod": "default/render", "claim": "default/render-gpu", "devices": 3}]
    assert [step["kind"] for way in said["ways"] for step in way["steps"]] == [
        "drop_device_selector",
        "tolerate_device",
        "evict",
        "add_node",
    ]


def test_one_node_is_told_device_by_device() -> None:
    said = run("why", "infer", "-f", CLUSTER, "-f", PENDING, "--node", "gpu-3").stdout
    assert "gpu-3/gpu-0, gpu-3/gpu-1, gpu-3/gpu-2: in use" in said
    assert "gpu-3/gpu-3: tainted example.com/memory-errors:NoSchedule" in said


def test_without_the_objects_of_devices_a_note_says_so() -> None:
    node = next(documents(CLUSTER))
    named = pod("p", resourceClaims=[{"name": "gpu", "resourceClaimName": "one"}])
    result = run("why", "p", "-f", "-", stdin=text_of(node, named))
    assert 'could not find ResourceClaim "default/one"' in result.stdout
    assert "note: the input has no ResourceClaim, ResourceSlice or DeviceClass: claims for devices" in result.stderr


def ask(folder: Path, address: str, *words: str) -> Result:
    config = {
        "current-context": "c",
        "clusters": [{"name": "c", "cluster": {"server": address}}],
        "users": [{"name": "u", "user": {"token": "t"}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u", "namespace": "default"}}],
    }
    (folder / "kubeconfig").write_text(yaml.safe_dump(config))
    return run(*words, "--kubeconfig", str(folder / "kubeconfig"))


@pytest.fixture
def serves_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    """The fake server has no discovery."""
    before = discovery.served_version

    async def version(client: Any, kind: Any) -> str | None:
        return "v1" if kind.group == "resource.k8s.io" else await before(client, kind)

    monkeypatch.setattr(live, "served_version", version)


def split(*names: str) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The nodes and pods of some files, and the objects of devices; in the namespace default."""
    found = [{**one, "metadata": {"namespace": "default", **one["metadata"]}} for one in documents(*names)]
    core = [one for one in found if one["apiVersion"] == "v1"]
    for one in core:
        if one["kind"] == "Node":
            del one["metadata"]["namespace"]
        else:
            one["spec"]["schedulerName"] = "default-scheduler"
    return core, [one for one in found if one["apiVersion"] != "v1"]


PLURALS = {
    "DeviceClass": "deviceclasses",
    "ResourceSlice": "resourceslices",
    "ResourceClaim": "resourceclaims",
    "ResourceClaimTemplate": "resourceclaimtemplates",
}


@pytest.mark.usefixtures("serves_devices")
def test_a_live_cluster_is_explained_as_its_objects_in_files_are(tmp_path: Path) -> None:
    core, devices = split(CLUSTER, PENDING)
    with served(*core) as (server, address):
        for one in devices:
            if one["kind"] in ("DeviceClass", "ResourceSlice"):
                one["metadata"].pop("namespace")
            server.put(f"{GROUP}/{PLURALS[one['kind']]}", one)
        told = json.loads(ask(tmp_path, address, "why", "infer", "-o", "json").stdout)
        fits = json.loads(ask(tmp_path, address, "plan", "fit", "train", "-o", "json").stdout)
        checked = ask(tmp_path, address, "check")
        assert {one.method for one in server.requests} == {"GET"}
    offline = values("why", "infer", "-f", CLUSTER, "-f", PENDING)
    details = [one["verdicts"][0]["details"][0]["text"] for one in (told, offline)]
    assert details[0] == details[1]
    assert told["ways"] == offline["ways"]
    assert fits["byNode"] == {"gpu-2": 1}
    assert checked.exit_code == 0, checked.output


def test_a_cluster_that_does_not_serve_devices_says_so_in_one_line(tmp_path: Path) -> None:
    core, _ = split(CLUSTER, PENDING)
    with served(*core) as (server, address):
        server.absent.add(GROUP)
        result = ask(tmp_path, address, "why", "infer")
        checked = ask(tmp_path, address, "check", "--fail-on", "never")
    assert result.exit_code == 0
    line = "the cluster does not serve deviceclasses, resourceslices, resourceclaims of resource.k8s.io"
    assert [one for one in result.stderr.splitlines() if "devices" in one or "resource.k8s.io" in one] == [
        f"note: {line}: claims for devices count as missing"
    ]
    assert f"note: {line}: SIT012 to SIT017 are not checked, or only in part" in checked.stderr


@pytest.mark.usefixtures("serves_devices")
def test_devices_that_may_not_be_listed_are_said_in_one_line(tmp_path: Path) -> None:
    core, _ = split(CLUSTER, PENDING)
    with served(*core, hidden=tuple(f"/{plural}" for plural in PLURALS.values())) as (_, address):
        result = ask(tmp_path, address, "why", "infer")
    assert result.exit_code == 0
    (line,) = [one for one in result.stderr.splitlines() if "cannot list" in one]
    assert line.startswith("note: cannot list deviceclasses, resourceclaims, ")
    assert line.endswith("claims for devices count as missing")


# ── place ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_pods_are_placed_with_devices_of_their_own_and_claims_from_their_templates() -> None:
    pods = [pod(f"p{at}", template="one") for at in range(6)]
    stdin = text_of(*documents(CLUSTER), template("one", asks()), *pods)
    placed = values("place", "-f", "-", stdin=stdin)["pods"]
    devices = [f"{one['pool']}/{one['device']}" for each in placed for one in each["devices"]]
    assert [one["outcome"] for one in placed] == ["placed"] * 5 + ["refused"]
    assert len(set(devices)) == len(devices) == 5
    result = run("place", "-f", "-", stdin=stdin)
    assert "gets gpu-2/gpu-0" in result.stdout
    assert "note: 6 pending pods have no claims yet: assumes what the templates ask for" in result.stderr


def test_pods_with_extended_resources_get_devices_of_their_own() -> None:
    pods = [pod(f"p{at}", resources={"example.com/gpu": "2"}) for at in range(3)]
    placed = values("place", "-f", "-", stdin=text_of(*documents(CLUSTER), *pods))["pods"]
    assert [one["node"] for one in placed] == ["gpu-2", "gpu-2", None]


@pytest.mark.parametrize(
    "selector, change, node, device",
    [
        ({"pool": "gpu-2"}, "node", "gpu-1", "gpu-3"),
        ({"pool": "gpu-2", "device": "gpu-0"}, "devices", "gpu-2", "gpu-1"),
    ],
)
def test_an_upgrade_shows_pods_that_get_other_devices(selector: Any, change: str, node: str, device: str) -> None:
    """Only 1.37 reads DeviceTaintRules."""
    rule = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceTaintRule",
        "metadata": {"name": "hot"},
        "spec": {"deviceSelector": selector, "taint": {"key": "hot", "effect": "NoSchedule"}},
    }
    stdin = text_of(*documents(CLUSTER), rule, template("one", asks()), pod("p", template="one"))
    found = values("place", "-f", "-", "--compare-kubernetes-version", "1.37", stdin=stdin)
    (one,) = found["changes"]
    assert (one["change"], one["before"]["node"], one["after"]["node"]) == (change, "gpu-2", node)
    devices = [[each["device"] for each in one[side]["devices"]] for side in ("before", "after")]
    assert devices == [["gpu-0"], [device]]


# ── plan ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_more_pods_fit_as_there_are_devices() -> None:
    assert values("plan", "fit", "-w", WORKLOAD, "-f", CLUSTER)["byNode"] == {"gpu-1": 1, "gpu-2": 4}
    assert values("plan", "fit", "train", "-f", CLUSTER)["fits"] == 1


def test_a_template_that_is_not_there_is_noted() -> None:
    stdin = text_of(*documents(CLUSTER), pod("p", template="nowhere"))
    result = run("plan", "fit", "p", "-f", "-", stdin=stdin)
    assert "note: the input has no ResourceClaimTemplate nowhere: its claims count as not made yet" in result.stderr


def test_new_nodes_bring_their_devices(tmp_path: Path) -> None:
    more = Path(WORKLOAD).read_text().replace("replicas: 3", "replicas: 12")
    (tmp_path / "more.yaml").write_text(more)
    found = values("plan", "nodes", "-w", str(tmp_path / "more.yaml"), "-f", CLUSTER, "--like", "gpu-1")
    assert found["nodes"] == 2  # five are free, and a node has four


def test_losses_and_drains_count_devices() -> None:
    found = values("plan", "survive", "-f", CLUSTER)
    lost = {one["domain"]: [each["pod"] for each in one["lost"]] for one in found["losses"]}
    assert lost["zone-a"] == ["default/train"]
    assert lost["gpu-1"] == lost["gpu-3"] == []
    assert run("plan", "drain", "gpu-1", "-f", CLUSTER).exit_code == 0
    assert run("plan", "drain", "gpu-1", "gpu-2", "-f", CLUSTER).exit_code == 1


# ── check ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def codes(*objects: dict[str, Any]) -> list[tuple[str, str]]:
    found = values("check", "-f", "-", "--fail-on", "never", stdin=text_of(*documents(CLUSTER), *objects))
    return [(one["code"], one["field"]) for one in found["findings"] if one["code"] >= "SIT012"]


ONE = "spec.spec.devices.requests[0].exactly"
SELECTOR = 'device.attributes["gpu.example.com"].cores > 3'


@pytest.mark.parametrize(
    "objects, expected",
    [
        ([template("t", asks())], []),
        ([pod("p", template="nope")], [("SIT012", "spec.resourceClaims[0].resourceClaimTemplateName")]),
        (
            [pod("p", resourceClaims=[{"name": "gpu", "resourceClaimName": "nope"}])],
            [("SIT012", "spec.resourceClaims[0].resourceClaimName")],
        ),
        ([template("t", asks(of="nope"))], [("SIT013", f"{ONE}.deviceClassName")]),
        ([template("t", asks(selector="device.nope == 1"))], [("SIT014", f"{ONE}.selectors[0].cel.expression")]),
        ([template("t", asks(selector=SELECTOR))], [("SIT015", f"{ONE}.selectors[0].cel.expression")]),
        ([template("t", asks(count=5))], [("SIT016", "spec.spec.devices")]),
        ([template("t", asks(count=3)), template("u", asks(count=4)), pod("p", template="t")], []),
        (
            [
                template("t", asks(count=3)),
                pod(
                    "p",
                    resourceClaims=[
                        {"name": "a", "resourceClaimTemplateName": "t"},
                        {"name": "b", "resourceClaimTemplateName": "three-gpus"},
                    ],
                ),
            ],
            [("SIT016", "spec.resourceClaims")],
        ),
        (
            [
                {
                    "apiVersion": "resource.k8s.io/v1",
                    "kind": "DeviceClass",
                    "metadata": {"name": "other"},
                    "spec": {"extendedResourceName": "example.com/gpu"},
                }
            ],
            [("SIT017", "spec.extendedResourceName")],
        ),
    ],
)
def test_what_can_never_work_is_found(objects: list[dict[str, Any]], expected: list[tuple[str, str]]) -> None:
    assert codes(*objects) == expected


def test_without_slices_and_classes_notes_say_what_is_not_checked() -> None:
    result = run("check", "-f", "-", stdin=text_of(template("t", asks()), pod("p", template="t")))
    assert result.exit_code == 0
    assert "note: the input has no DeviceClass: SIT013 is not checked" in result.stderr
    assert "note: the input has no ResourceSlice: SIT015 and SIT016 are not checked" in result.stderr


# ── simulate ────────────────────────────────────────────────────────────────────────────────────────────────────────


def job(pods: int, **spec: Any) -> dict[str, Any]:
    made = pod("x", **spec)["spec"] | {"restartPolicy": "Never"}
    body = {"parallelism": pods, "completions": pods, "template": {"spec": made}}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "work"}, "spec": body}


@pytest.mark.parametrize("spec", [{"template": "one"}, {"resources": {"example.com/gpu": "1"}}])
def test_pods_wait_for_devices_that_finished_pods_give_back(tmp_path: Path, spec: dict[str, Any]) -> None:
    (tmp_path / "work.yaml").write_text(text_of(template("one", asks()), job(12, **spec)))
    words = ("simulate", "-f", CLUSTER, "-w", str(tmp_path / "work.yaml"), "--duration", "60s")
    (found,) = values(*words)["configurations"]
    assert (found["pods"]["placed"], found["pods"]["finished"]) == (12, 12)
    assert found["seconds"] == 180  # five GPUs are free: three rounds


def test_a_claim_that_pods_share_is_given_back_when_the_last_has_finished(tmp_path: Path) -> None:
    shared = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": "four", "uid": "four"},
        "spec": {"devices": {"requests": [asks(count=4)]}},
    }
    first = job(3, resourceClaims=[{"name": "gpu", "resourceClaimName": "four"}])
    second = job(2, template="three-gpus")
    second["metadata"]["name"] = "later"
    (tmp_path / "work.yaml").write_text(text_of(shared, first, second))
    words = ("simulate", "-f", CLUSTER, "-w", str(tmp_path / "work.yaml"), "--duration", "60s")
    (found,) = values(*words)["configurations"]
    assert (found["pods"]["placed"], found["pods"]["finished"]) == (5, 5)
