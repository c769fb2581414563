"""What deploy/ holds, on a real API server: it is taken, and the scheduler works with the rights it gives.

The API server here keeps an audit log of what the scheduler's account asks for. No kubelet here runs containers: the
scheduler runs outside, with the account's token, the ConfigMap's configuration and the Deployment's flags.
"""

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from deploy.rights import KUSTOMIZE, REVIEW_ACCESS, REVIEW_TOKENS, ROOT, USER, Allowed, allowed
from kubernetes.cluster import Cluster, Scheduler
from kubernetes.devices import claim as device_claim
from kubernetes.devices import claiming, gpu_class, slice_of
from kubernetes.objects import Json, pod, pod_group
from kubernetes.parts import folder, wait_until
from kubernetes.proxy import BINDS, Fault, FaultProxy, Faults, Match
from situate.kube.kinds import CUSTOM_POD_GROUPS

VARIANTS = {"base": "base", "preemption": "overlays/preemption", "instead": "overlays/instead"}
ACCOUNT = "situate-system/situate"
DELETE_PODS = Allowed("delete", "", "pods")
UNUSED = {
    Allowed("watch", "resource.k8s.io", "devicetaintrules"),
    Allowed("patch", "resource.k8s.io", "resourceclaims/binding"),
    Allowed("delete", "resource.k8s.io", "resourceclaims"),
}
CUSTOM = {kind.group for kind in CUSTOM_POD_GROUPS}
CLAIM_STATUSES = Match("PATCH", r"/resourceclaims/[^/]+/status$")
KUBECTL_S = 60.0
SYSTEM = ("kube-system", "situate-system")


# ── set-up ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def control_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """One whose audit log has the requests of the scheduler's account, and no others."""
    home = tmp_path_factory.mktemp("audited")
    rules = [{"level": "Metadata", "users": [USER]}, {"level": "None"}]
    policy = {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"], "rules": rules}
    (home / "audit-policy.json").write_text(json.dumps(policy))
    flags = (f"--audit-policy-file={home / 'audit-policy.json'}", f"--audit-log-path={home / 'audit.log'}")
    with Cluster(home, apiserver_flags=flags) as cluster:
        yield cluster


@pytest.fixture
def cluster(cluster: Cluster) -> Iterator[Cluster]:
    """With an empty audit log; what is deployed goes when the test ends."""
    (cluster.home / "audit.log").write_text("")
    yield cluster
    cluster.stop_beside()
    # The namespace goes last, by Cluster.wipe(): nobody here would ever finish removing it.
    left = [item for variant in ("base", "instead") for item in rendered(variant) if item["kind"] != "Namespace"]
    kubectl(cluster, "delete", "--ignore-not-found", "--filename=-", stdin=json.dumps(as_list(left)))


def kubectl(cluster: Cluster, *arguments: str, stdin: str | None = None) -> str:
    """Unlike Cluster.kubectl, with no namespace of the test's own: the manifests name theirs."""
    environment = os.environ | {"KUBECONFIG": str(cluster.kubeconfig), "HOME": str(cluster.home)}
    done = subprocess.run(
        [str(folder() / "kubectl"), *arguments],
        input=stdin,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=KUBECTL_S,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@cache
def manifests(variant: str) -> str:
    """What `kubectl kustomize` makes of a variant."""
    command = [str(folder() / "kubectl"), "kustomize", str(KUSTOMIZE / VARIANTS[variant])]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=KUBECTL_S).stdout


def rendered(variant: str) -> list[Json]:
    return list(yaml.safe_load_all(manifests(variant)))


def as_list(items: list[Json]) -> Json:
    return {"apiVersion": "v1", "kind": "List", "items": items}


def one_of(items: list[Json], kind: str) -> Json:
    [found] = [item for item in items if item["kind"] == kind]
    return found


def deploy(cluster: Cluster, variant: str) -> None:
    apply = ("apply", "--server-side", "--warnings-as-errors", "--filename=-")
    kubectl(cluster, *apply, stdin=manifests(variant))


def run(cluster: Cluster, *, server: str | None = None) -> Scheduler:
    """The scheduler as the cluster now has it: its configuration, its flags, its account."""
    inside = "/api/v1/namespaces/situate-system"
    config = yaml.safe_load(cluster.api.get(f"{inside}/configmaps/situate")["data"]["config.yaml"])
    deployment = cluster.api.get("/apis/apps/v1/namespaces/situate-system/deployments/situate")
    [container] = deployment["spec"]["template"]["spec"]["containers"]
    command, own_config, *flags = container["args"]
    assert (command, own_config) == ("scheduler", "--config=/etc/situate/config.yaml")
    access = cluster.kubeconfig_for(cluster.token_for(ACCOUNT), server=server)
    return cluster.situate(config, kubeconfig=access, flags=flags)


def start(cluster: Cluster, variant: str, *, nodes: int = 1, cpu: str = "3") -> Scheduler:
    """Nodes with kubelets, and the scheduler deployed and running."""
    cluster.hollow_nodes(nodes, cpu=cpu)
    cluster.kwok()
    deploy(cluster, variant)
    return run(cluster)


# ── what was asked for ──────────────────────────────────────────────────────────────────────────────────────────────


def audited(cluster: Cluster) -> list[Json]:
    """The requests of the account that the server has answered, or begun to."""
    return [json.loads(line) for line in (cluster.home / "audit.log").read_text().splitlines()]


def forbidden(cluster: Cluster) -> list[str]:
    return [event["requestURI"] for event in audited(cluster) if event["responseStatus"]["code"] in (401, 403)]


def asked_for(cluster: Cluster) -> set[Allowed]:
    """The rights that these requests needed; with the namespace and the name where the manifests limit them so."""
    found = set()
    for event in audited(cluster):
        what = event.get("objectRef")
        if what is None or "resource" not in what:
            continue
        resource = "/".join(part for part in (what["resource"], what.get("subresource")) if part)
        namespace = what.get("namespace", "")
        limited = namespace in SYSTEM and what["resource"] in ("leases", "configmaps")
        name = what.get("name", "") if limited and event["verb"] != "create" else ""
        found.add(Allowed(event["verb"], what.get("apiGroup", ""), resource, namespace if limited else "", name))
    return found


def complaints(scheduler: Scheduler) -> list[str]:
    """Lines of its log about errors, or about what it may not do."""
    lines = scheduler.said().splitlines()
    return [line for line in lines if line[:1] == "E" or "forbidden" in line.lower() or "cannot" in line]


def events(cluster: Cluster, reason: str) -> dict[str, Json]:
    found = cluster.api.items(f"/apis/events.k8s.io/v1/namespaces/{cluster.namespace}/events")
    return {event["regarding"]["name"]: event for event in found if event["reason"] == reason}


def refused(cluster: Cluster, name: str) -> str:
    """Why a pod waits; empty while nobody has said."""
    conditions = (cluster.pod(name) or {"status": {}})["status"].get("conditions", [])
    return "".join(one.get("message", "") for one in conditions if one["type"] == "PodScheduled")


# ── the manifests ───────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_manifests_are_taken_without_a_warning_and_a_second_time_change_nothing(
    cluster: Cluster, variant: str
) -> None:
    deploy(cluster, variant)
    diff = kubectl(cluster, "diff", "--server-side", "--filename=-", stdin=manifests(variant))
    assert diff == ""


def test_a_pod_of_the_deployment_passes_the_strictest_pod_security_level(cluster: Cluster) -> None:
    deploy(cluster, "base")
    template = one_of(rendered("base"), "Deployment")["spec"]["template"]
    metadata = {"name": "situate-0", "labels": template["metadata"]["labels"]}
    made = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}
    path = "/api/v1/namespaces/situate-system/pods?dryRun=All"
    assert cluster.api.post(path, made)["spec"]["priorityClassName"] == "system-cluster-critical"

    loose: Any = json.loads(json.dumps(made))
    loose["spec"]["containers"][0]["securityContext"]["allowPrivilegeEscalation"] = True
    with pytest.raises(Exception, match="violates PodSecurity"):
        cluster.api.post(path, loose)


def test_the_disruption_budget_and_the_service_select_the_pods_of_the_deployment(cluster: Cluster) -> None:
    items = rendered("base")
    labels = one_of(items, "Deployment")["spec"]["template"]["metadata"]["labels"]
    budget = one_of(items, "PodDisruptionBudget")["spec"]["selector"]["matchLabels"]
    service = one_of(items, "Service")["spec"]["selector"]
    assert budget.items() <= labels.items()
    assert service.items() <= labels.items()


# ── the scheduler with these rights ─────────────────────────────────────────────────────────────────────────────────


def test_beside_kube_scheduler_its_own_pods_run_and_nothing_is_forbidden(cluster: Cluster) -> None:
    situate = start(cluster, "base")
    cluster.kube_scheduler()
    cluster.create(pod("ours", scheduler="situate"), pod("theirs"))
    cluster.wait_for_phase("ours", "theirs")
    wait_until(lambda: {"ours", "theirs"} <= events(cluster, "Scheduled").keys(), "the events that say so")
    said_by = {name: event["reportingController"] for name, event in events(cluster, "Scheduled").items()}
    assert said_by == {"ours": "situate", "theirs": "default-scheduler"}
    assert complaints(situate) == []
    assert forbidden(cluster) == []


def test_without_preemption_nobody_is_evicted_and_no_delete_is_tried(cluster: Cluster) -> None:
    situate = start(cluster, "base", cpu="1")
    cluster.create_priority_classes(low=100, high=1000)
    cluster.create(pod("low", cpu="1", scheduler="situate", priorityClassName="low"))
    cluster.wait_for_phase("low")
    cluster.create(pod("high", cpu="1", scheduler="situate", priorityClassName="high"))
    wait_until(lambda: "Insufficient cpu" in refused(cluster, "high"), "high to be refused")
    assert list(cluster.bound()) == ["low"]
    assert DELETE_PODS not in asked_for(cluster)
    assert complaints(situate) == []
    assert forbidden(cluster) == []


def test_with_preemption_a_victim_is_evicted(cluster: Cluster) -> None:
    situate = start(cluster, "preemption", cpu="1")
    cluster.create_priority_classes(low=100, high=1000)
    cluster.create(pod("low", cpu="1", scheduler="situate", priorityClassName="low"))
    cluster.wait_for_phase("low")
    cluster.create(pod("high", cpu="1", scheduler="situate", priorityClassName="high"))
    cluster.wait_for_phase("high")
    assert list(cluster.bound()) == ["high"]
    assert DELETE_PODS in asked_for(cluster)
    assert complaints(situate) == []
    assert forbidden(cluster) == []


def test_instead_of_kube_scheduler_it_takes_over_when_that_lets_go_of_the_lease(cluster: Cluster) -> None:
    cluster.hollow_nodes(1)
    cluster.kwok()
    theirs = cluster.kube_scheduler({"leaderElection": {"leaderElect": True}})
    deploy(cluster, "instead")
    situate = run(cluster)
    cluster.create(pod("before"))
    cluster.wait_for_phase("before")
    assert "/binding" not in "".join(event["requestURI"] for event in audited(cluster))

    theirs.stop()
    cluster.create(pod("after"))
    cluster.wait_for_phase("after")
    path = f"/api/v1/namespaces/{cluster.namespace}/pods/after/binding"
    assert path in {event["requestURI"].partition("?")[0] for event in audited(cluster)}
    assert complaints(situate) == []
    assert forbidden(cluster) == []


# ── every right is used ─────────────────────────────────────────────────────────────────────────────────────────────

LATE = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "late"}}
LATE |= {"provisioner": "driver.test", "volumeBindingMode": "WaitForFirstConsumer"}
SIZE = {"accessModes": ["ReadWriteOnce"], "storageClassName": "late"}


def claim(name: str, size: str) -> Json:
    spec = {**SIZE, "resources": {"requests": {"storage": size}}}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name}, "spec": spec}


def volume(name: str, size: str) -> Json:
    spec = {**SIZE, "capacity": {"storage": size}, "csi": {"driver": "driver.test", "volumeHandle": name}}
    return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": spec}


def use_volumes(cluster: Cluster) -> None:
    """A claim that a volume is there for, and one whose volume is made when a node has been chosen."""
    cluster.create(LATE, volume("there", "1Gi"), claim("small", "1Gi"), claim("large", "9Gi"))
    cluster.api.patch("/api/v1/persistentvolumes/there/status", {"status": {"phase": "Available"}})
    used = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in ("small", "large")]
    cluster.create(pod("stores", scheduler="situate", volumes=used))
    claims = f"/api/v1/namespaces/{cluster.namespace}/persistentvolumeclaims"

    def chosen() -> bool:
        annotations = cluster.api.get(f"{claims}/large")["metadata"].get("annotations", {})
        return "volume.kubernetes.io/selected-node" in annotations

    wait_until(chosen, "a node to be chosen for the claim")
    cluster.create(volume("made", "9Gi"))
    for name, bound_to in (("small", "there"), ("large", "made")):
        annotations = {"pv.kubernetes.io/bind-completed": "yes"}
        cluster.api.patch(
            f"{claims}/{name}", {"metadata": {"annotations": annotations}, "spec": {"volumeName": bound_to}}
        )
    cluster.wait_for_phase("stores")


def use_devices(cluster: Cluster) -> None:
    """A claim, and an extended resource that devices serve."""
    [node] = [one["metadata"]["name"] for one in cluster.api.items("/api/v1/nodes")]
    cluster.create(gpu_class(), slice_of(node, 2), device_claim("held"))
    cluster.create(claiming("holds", of_claim="held", scheduler="situate"), claiming("extended", scheduler="situate"))
    cluster.wait_for_phase("holds", "extended")


def wait_in_vain(cluster: Cluster) -> None:
    """A gang that does not fit; and a pod that does not, again and again, with the same words."""
    cluster.create(pod_group("gang", min_count=2))
    cluster.create(*(pod(f"gang-{at}", cpu="2", group="gang", scheduler="situate") for at in range(2)))
    cluster.create(pod("giant", cpu="64", scheduler="situate"))
    wait_until(lambda: all(refused(cluster, name) for name in ("gang-0", "gang-1", "giant")), "these to be refused")
    turn = iter(range(1_000_000))

    def repeated() -> bool:
        cluster.api.patch("/api/v1/nodes/node-0", {"status": {}, "metadata": {"labels": {"turn": str(next(turn))}}})
        cluster.api.patch("/api/v1/nodes/node-0/status", {"status": {"allocatable": {"memory": f"{next(turn) + 9}Gi"}}})
        return any("series" in event for event in events(cluster, "FailedScheduling").values())

    wait_until(repeated, "an event to be repeated")


def evict(cluster: Cluster) -> None:
    cluster.create_priority_classes(high=1000)
    cluster.create(pod("high", cpu="3", scheduler="situate", priorityClassName="high"))
    cluster.wait_for_phase("high")


def test_every_right_that_is_given_is_used(cluster: Cluster) -> None:
    """But for lists, which the reflector needs only where a server cannot send them as watches; for the PodGroups of
    other schedulers and DeviceTaintRules, which this server has not; for resourceclaims/binding, about which the
    server itself asks; and for the deletion of a claim, which only a bind that fails needs."""
    cluster.hollow_nodes(1, cpu="3")
    cluster.kwok()
    deploy(cluster, "preemption")
    with FaultProxy(cluster, seed=1) as proxy:
        # Every bind and allocation is done, and half of the answers are lost: pod and claim are read to know.
        lost = (Fault(match, share=0.5, status=0, forwarded=True) for match in (BINDS, CLAIM_STATUSES))
        proxy.set(Faults(answers=tuple(lost)))
        situate, standby = run(cluster, server=proxy.url), run(cluster)
        names = [f"small-{at}" for at in range(8)]
        cluster.create(*(pod(name, cpu="50m", scheduler="situate") for name in names))
        cluster.wait_for_phase(*names)
        use_volumes(cluster)
        use_devices(cluster)
        wait_in_vain(cluster)
        evict(cluster)
        reader = cluster.token_for("reader")
        with pytest.raises(Exception, match="403"):
            situate.get("/metrics", token=reader)
        assert "scheduler_" in situate.get("/metrics", token=cluster.tokens["admin"])
        given = allowed(rendered("preemption"))

        def unused() -> set[Allowed]:
            left = given - asked_for(cluster) - UNUSED
            return {one for one in left if one.verb != "list" and one.group not in CUSTOM}

        with suppress(TimeoutError):  # the first renewal of the lease, say, is due only after a while
            wait_until(lambda: not unused(), "every right to be used", 10)
        assert unused() == set()
        assert complaints(situate) + complaints(standby) == []

    assert {REVIEW_TOKENS, REVIEW_ACCESS} <= asked_for(cluster)
    assert forbidden(cluster) == []


# ── make ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def make(cluster: Cluster) -> Callable[..., tuple[int, str]]:
    """Runs make with the cluster's kubeconfig, and no terminal but the one given: the exit code, and all it said."""

    def run_make(
        *words: str, kubeconfig: Path = cluster.kubeconfig, terminal: int = subprocess.DEVNULL
    ) -> tuple[int, str]:
        leaks = ("MAKEFLAGS", "MAKELEVEL", "MFLAGS")
        environment = {name: value for name, value in os.environ.items() if name not in leaks}
        environment |= {"KUBECONFIG": str(kubeconfig), "HOME": str(cluster.home)}
        environment["PATH"] = f"{folder()}:{environment['PATH']}"
        done = subprocess.run(
            ["make", *words],
            cwd=ROOT,
            env=environment,
            stdin=terminal,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=KUBECTL_S,
        )
        return done.returncode, done.stdout

    return run_make


def system_rights(cluster: Cluster) -> set[str]:
    """Names of what is deployed outside the namespace, and of the roles inside."""
    api = "/apis/rbac.authorization.k8s.io/v1"
    paths = [f"{api}/{kind}" for kind in ("clusterroles", "clusterrolebindings")]
    paths += [f"{api}/namespaces/{where}/{kind}" for where in SYSTEM for kind in ("roles", "rolebindings")]
    return {
        f"{item['metadata'].get('namespace', '')}/{item['metadata']['name']}"
        for path in paths
        for item in cluster.api.items(path)
        if item["metadata"]["name"].startswith("situate")
    }


def test_make_deploys_and_removes_after_saying_where(cluster: Cluster, make: Callable[..., tuple[int, str]]) -> None:
    code, said = make("deploy-scheduler", "IMAGE=registry.test/situate:1", "VARIANT=instead", "WAIT=0")
    assert code == 0, said
    assert said.startswith(f"deploying registry.test/situate:1, instead, to the context admin, {cluster.url}\n"), said
    path = "/apis/apps/v1/namespaces/situate-system/deployments/situate"
    [container] = cluster.api.get(path)["spec"]["template"]["spec"]["containers"]
    assert container["image"] == "registry.test/situate:1"
    assert {"/situate-preemption", "kube-system/situate-lease"} <= system_rights(cluster)

    code, said = make("deploy-scheduler", "WAIT=0")
    assert code == 0, said
    assert said.startswith("deploying localhost/situate:"), said
    assert system_rights(cluster) == {
        "/situate",
        "kube-system/situate-authentication",
        "kube-system/situate-publishing",
        "situate-system/situate-lease",
    }, "what the other variant was allowed is taken back"

    code, said = make("remove-scheduler", "WAIT=0")
    assert code == 0, said
    assert said.startswith(f"removing situate from the context admin, {cluster.url}\n"), said
    assert system_rights(cluster) == set()
    assert cluster.api.get("/api/v1/namespaces/situate-system")["status"]["phase"] == "Terminating"


def test_on_a_terminal_make_asks_first(cluster: Cluster, make: Callable[..., tuple[int, str]]) -> None:
    ours, theirs = os.openpty()
    try:
        os.write(ours, b"n\n")
        code, said = make("deploy-scheduler", "WAIT=0", terminal=theirs)
        assert (code != 0, said.splitlines()[1].startswith("Go on? [y/N] nothing was done")) == (True, True), said
        assert system_rights(cluster) == set()
        os.write(ours, b"y\n")
        code, said = make("deploy-scheduler", "WAIT=0", terminal=theirs)
        assert code == 0, said
        assert "/situate" in system_rights(cluster)
        code, said = make("remove-scheduler", "WAIT=0", "YES=1", terminal=theirs)
        assert (code, "Go on?" in said) == (0, False), said
    finally:
        os.close(ours)
        os.close(theirs)


def test_make_says_what_is_wrong_in_one_line(
    cluster: Cluster, make: Callable[..., tuple[int, str]], tmp_path: Path
) -> None:
    (tmp_path / "empty").write_text("")
    code, said = make("deploy-scheduler", kubeconfig=tmp_path / "empty")
    assert code != 0
    assert said.startswith("there is no current kubeconfig context: "), said
    code, said = make("deploy-scheduler", "VARIANT=other")
    assert code != 0
    assert said.startswith("VARIANT is other; it can be base, preemption or instead\n"), said
