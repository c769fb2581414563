"""What the official Python client (`kubernetes` on PyPI) can do with a server, each check by itself.

    python -I official_client.py KUBECONFIG NAMESPACE     one line of JSON for each check: its name, what went wrong

It is a program, because that client has the name of this very package: whoever imports this file gets the names of the
checks, and only the program has the client.
"""

import importlib
import json
import sys
import threading
import traceback
from collections.abc import Callable
from typing import Any

Json = dict[str, Any]
Check = Callable[[str], None]

CHECKS: dict[str, Check] = {}
OWN_CHECKS: dict[str, Check] = {}
"""Of what only situate has."""
WATCH_S = 10


def official(name: str) -> Any:
    """A module of the client's."""
    return importlib.import_module(f"kubernetes.{name}")


def check(run: Check) -> Check:
    CHECKS[run.__name__] = run
    return run


def own_check(run: Check) -> Check:
    OWN_CHECKS[run.__name__] = run
    return run


def pod(name: str, **labels: str) -> Json:
    container = {"name": "main", "image": "registry.test/pause", "resources": {"requests": {"cpu": "100m"}}}
    return {"metadata": {"name": name, "labels": labels}, "spec": {"containers": [container]}}


def node(name: str) -> Json:
    amounts = {"cpu": "4", "memory": "8Gi", "pods": "10"}
    return {"metadata": {"name": name}, "status": {"capacity": amounts, "allocatable": amounts}}


def deployment(name: str) -> Any:
    """Of the client's own classes, as people write it."""
    of = official("client")
    container = of.V1Container(name="main", image="registry.test/pause:1")
    template = of.V1PodTemplateSpec(
        metadata=of.V1ObjectMeta(labels={"app": name}), spec=of.V1PodSpec(containers=[container])
    )
    spec = of.V1DeploymentSpec(replicas=2, selector=of.V1LabelSelector(match_labels={"app": name}), template=template)
    return of.V1Deployment(metadata=of.V1ObjectMeta(name=name), spec=spec)


def refused(ask: Callable[[], Any]) -> tuple[int, str]:
    """Status and reason of the refusal."""
    try:
        ask()
    except official("client").ApiException as error:
        status, said = error.status, json.loads(error.body)
    else:
        raise AssertionError("it was not refused")
    assert (said["kind"], said["code"]) == ("Status", status)
    return status, said["reason"]


@check
def pods_are_made_read_changed_and_deleted(namespace: str) -> None:
    api = official("client").CoreV1Api()
    made = api.create_namespaced_pod(namespace, pod("web", app="web"))
    assert made.status.phase == "Pending"
    assert made.spec.restart_policy == "Always"
    assert made.metadata.uid
    api.patch_namespaced_pod("web", namespace, {"metadata": {"labels": {"tier": "front"}}})
    read = api.read_namespaced_pod("web", namespace)
    assert read.metadata.labels == {"app": "web", "tier": "front"}
    read.metadata.labels["tier"] = "back"
    put = api.replace_namespaced_pod("web", namespace, read)
    assert put.metadata.labels["tier"] == "back"
    assert refused(lambda: api.replace_namespaced_pod("web", namespace, read)) == (409, "Conflict")
    api.delete_namespaced_pod("web", namespace, grace_period_seconds=0)
    assert refused(lambda: api.read_namespaced_pod("web", namespace)) == (404, "NotFound")


@check
def lists_are_selected_and_cut_into_pages(namespace: str) -> None:
    api = official("client").CoreV1Api()
    for number in range(5):
        api.create_namespaced_pod(namespace, pod(f"listed-{number}", part=str(number % 2), all="yes"))
    odd = api.list_namespaced_pod(namespace, label_selector="all=yes,part in (1)")
    assert [one.metadata.name for one in odd.items] == ["listed-1", "listed-3"]
    named = api.list_namespaced_pod(namespace, field_selector="metadata.name=listed-2,spec.nodeName=")
    assert [one.metadata.name for one in named.items] == ["listed-2"]
    names, token = [], ""
    for _ in range(3):
        page = api.list_namespaced_pod(namespace, label_selector="all=yes", limit=2, _continue=token)
        names += [one.metadata.name for one in page.items]
        token = page.metadata._continue
    assert not token
    assert names == [f"listed-{number}" for number in range(5)]
    gone = api.delete_collection_namespaced_pod(namespace, label_selector="all=yes", grace_period_seconds=0)
    assert gone is not None
    assert api.list_namespaced_pod(namespace, label_selector="all=yes").items == []


@check
def deployments_are_made_scaled_patched_in_three_ways_and_deleted(namespace: str) -> None:
    api = official("client").AppsV1Api()
    made = api.create_namespaced_deployment(namespace, deployment("shop"))
    assert (made.spec.replicas, made.spec.strategy.type, made.metadata.generation) == (2, "RollingUpdate", 1)
    container = {"name": "main", "image": "registry.test/pause:2"}
    strategic = api.patch_namespaced_deployment(
        "shop", namespace, {"spec": {"template": {"spec": {"containers": [container]}}}}
    )
    [now] = strategic.spec.template.spec.containers
    assert (now.image, strategic.metadata.generation) == ("registry.test/pause:2", 2)
    listed = api.patch_namespaced_deployment(
        "shop", namespace, [{"op": "replace", "path": "/spec/replicas", "value": 3}]
    )
    assert listed.spec.replicas == 3
    scaled = api.patch_namespaced_deployment_scale("shop", namespace, {"spec": {"replicas": 5}})
    assert (scaled.spec.replicas, scaled.status.selector) == (5, "app=shop")
    assert api.read_namespaced_deployment_scale("shop", namespace).spec.replicas == 5
    api.delete_namespaced_deployment("shop", namespace, propagation_policy="Background")
    assert api.list_namespaced_deployment(namespace).items == []


@check
def nodes_are_made_labelled_tainted_reported_on_and_deleted(namespace: str) -> None:
    api, name = official("client").CoreV1Api(), f"{namespace}-node"
    api.create_node(node(name))
    api.patch_node(name, {"metadata": {"labels": {"disk": "ssd"}}, "spec": {"unschedulable": True}})
    taint = {"key": "dedicated", "value": "ours", "effect": "NoSchedule"}
    api.patch_node(name, {"spec": {"taints": [taint]}})
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "it is"}
    api.patch_node_status(name, {"status": {"conditions": [ready]}})
    read = api.read_node(name)
    assert (read.metadata.labels["disk"], read.spec.unschedulable) == ("ssd", True)
    assert ("dedicated", "NoSchedule") in {(one.key, one.effect) for one in read.spec.taints}
    assert [one.status for one in read.status.conditions if one.type == "Ready"] == ["True"]
    assert read.status.allocatable["pods"] == "10"
    api.delete_node(name)
    assert refused(lambda: api.read_node(name)) == (404, "NotFound")


@check
def a_watch_says_what_happens_and_goes_on_where_it_was(namespace: str) -> None:
    api, watch = official("client").CoreV1Api(), official("watch")
    begun = api.list_namespaced_pod(namespace).metadata.resource_version
    api.create_namespaced_pod(namespace, pod("watched"))
    api.patch_namespaced_pod("watched", namespace, {"metadata": {"labels": {"seen": "yes"}}})

    def until(kind: str, version: str) -> list[tuple[str, str, str]]:
        """All up to the first event of this kind: kind, name and version."""
        found = []
        stream = watch.Watch().stream(
            api.list_namespaced_pod, namespace, resource_version=version, timeout_seconds=WATCH_S
        )
        for event in stream:
            meta = event["object"].metadata
            found.append((event["type"], meta.name, meta.resource_version))
            if event["type"] == kind:
                break
        return found

    first = until("ADDED", begun)
    assert [one[:2] for one in first] == [("ADDED", "watched")]
    writer = threading.Timer(0.1, lambda: api.delete_namespaced_pod("watched", namespace, grace_period_seconds=0))
    writer.start()
    rest = until("DELETED", first[-1][2])
    writer.join()
    # A server may tell that it is being deleted before it tells that it is gone.
    assert [one[0] for one in rest] in (["MODIFIED", "DELETED"], ["MODIFIED", "MODIFIED", "DELETED"]), rest
    versions = [int(one[2]) for one in rest]
    assert versions == sorted(set(versions))


@check
def what_cannot_be_is_refused_with_a_status(namespace: str) -> None:
    api = official("client").CoreV1Api()
    wrong = pod("wrong")
    wrong["spec"]["containers"][0]["image"] = ""
    assert refused(lambda: api.create_namespaced_pod(namespace, wrong)) == (422, "Invalid")
    api.create_namespaced_config_map(namespace, {"metadata": {"name": "once"}, "data": {"a": "b"}})
    again = {"metadata": {"name": "once"}}
    assert refused(lambda: api.create_namespaced_config_map(namespace, again)) == (409, "AlreadyExists")
    assert refused(lambda: api.create_namespaced_pod("no-such", pod("p"))) == (404, "NotFound")
    old = {"metadata": {"name": "once", "resourceVersion": "1"}}
    assert refused(lambda: api.replace_namespaced_config_map("once", namespace, old)) == (409, "Conflict")


@check
def a_dry_run_changes_nothing(namespace: str) -> None:
    api = official("client").CoreV1Api()
    made = api.create_namespaced_pod(namespace, pod("dry"), dry_run="All")
    assert made.metadata.uid
    assert refused(lambda: api.read_namespaced_pod("dry", namespace)) == (404, "NotFound")


@check
def events_of_both_groups_are_the_same_events(namespace: str) -> None:
    core, events = official("client").CoreV1Api(), official("client").EventsV1Api()
    about = {"kind": "Pod", "namespace": namespace, "name": "web", "apiVersion": "v1"}
    body = {
        "metadata": {"name": "web.1"},
        "involvedObject": about,
        "reason": "Tested",
        "message": "it was",
        "type": "Normal",
        "source": {"component": "test"},
        "firstTimestamp": "2026-01-01T00:00:00Z",
        "lastTimestamp": "2026-01-01T00:00:00Z",
        "count": 1,
    }
    core.create_namespaced_event(namespace, body)
    shown = json.loads(events.read_namespaced_event("web.1", namespace, _preload_content=False).data)
    assert (shown["note"], shown["regarding"]["name"], shown["reason"]) == ("it was", "web", "Tested")
    assert shown["deprecatedCount"] == 1


@check
def its_leader_election_works_on_a_lease(namespace: str) -> None:
    """Two candidates: the first leads; when it is gone the other does, in the next term."""
    lock = official("leaderelection.resourcelock.leaselock").LeaseLock
    config = official("leaderelection.electionconfig").Config
    election = official("leaderelection.leaderelection").LeaderElection
    led: list[str] = []

    def lead(name: str) -> None:
        wanted = config(
            lock("chief", namespace, name),
            lease_duration=3,
            renew_deadline=2,
            retry_period=1,
            onstarted_leading=lambda: led.append(name),
            onstopped_leading=lambda: None,
        )
        assert election(wanted).acquire()
        led.append(name)

    lead("first")
    lead("second")
    assert led == ["first", "second"]
    spec = official("client").CoordinationV1Api().read_namespaced_lease("chief", namespace).spec
    assert spec.holder_identity == "second"


@check
def its_dynamic_client_finds_kinds_and_applies(namespace: str) -> None:
    client, dynamic = official("client"), official("dynamic")
    found = dynamic.DynamicClient(client.ApiClient())
    configs = found.resources.get(api_version="v1", kind="ConfigMap")
    body = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "applied", "namespace": namespace},
        "data": {"a": "1"},
    }
    configs.server_side_apply(body, field_manager="one")
    made = configs.server_side_apply({**body, "data": {"a": "2"}}, field_manager="one")
    assert made.data.to_dict() == {"a": "2"}
    assert [one.manager for one in made.metadata.managedFields] == ["one"]
    try:
        configs.server_side_apply({**body, "data": {"a": "3"}}, field_manager="two")
    except official("dynamic.exceptions").ConflictError as error:
        said = str(error.body)
    else:
        raise AssertionError("nobody minded")
    assert "conflict" in said
    names = {one.kind for one in found.resources.search(group="apps")}
    assert {"Deployment", "ReplicaSet", "StatefulSet", "DaemonSet"} <= names


@check
def discovery_and_version_can_be_read(namespace: str) -> None:
    client = official("client")
    assert client.VersionApi().get_code().minor == "36"
    groups = {one.name for one in client.ApisApi().get_api_versions().groups}
    assert {"apps", "batch", "policy", "storage.k8s.io", "coordination.k8s.io", "events.k8s.io"} <= groups
    kinds = {one.name: one for one in client.CoreV1Api().get_api_resources().resources}
    assert {"create", "delete", "get", "list", "patch", "update", "watch"} <= set(kinds["pods"].verbs)
    assert "pods/binding" in kinds


@check
def rights_can_be_asked_for(namespace: str) -> None:
    client = official("client")
    asked = {"spec": {"resourceAttributes": {"verb": "delete", "resource": "nodes"}}}
    assert client.AuthorizationV1Api().create_self_subject_access_review(asked).status.allowed


@own_check
def decisions_are_custom_objects(namespace: str) -> None:
    core, custom, name = (
        official("client").CoreV1Api(),
        official("client").CustomObjectsApi(),
        f"{namespace}-own",
    )
    core.create_node(node(name))
    core.create_namespaced_pod(namespace, pod("placed"))
    binding = {"metadata": {"name": "placed"}, "target": {"apiVersion": "v1", "kind": "Node", "name": name}}
    core.create_namespaced_pod_binding("placed", namespace, binding, _preload_content=False)
    where = ("situate.dev", "v1alpha1", namespace, "placementdecisions")
    decision = custom.get_namespaced_custom_object(*where, "placed")
    assert (decision["spec"]["node"], decision["spec"]["bindingVersion"]) == (name, 1)
    assert decision["status"]["phase"] == "bound"
    assert [one["metadata"]["name"] for one in custom.list_namespaced_custom_object(*where)["items"]] == ["placed"]
    snapshot = custom.get_cluster_custom_object("situate.dev", "v1alpha1", "nodesnapshots", name)
    assert [one["name"] for one in snapshot["spec"]["pods"]] == ["placed"]
    assert snapshot["status"]["allocated"] == {"cpu": "100m", "pods": "1"}, snapshot["status"]
    seen = []
    for event in (
        official("watch")
        .Watch()
        .stream(custom.list_namespaced_custom_object, *where, resource_version="0", timeout_seconds=WATCH_S)
    ):
        seen.append((event["type"], event["object"]["metadata"]["name"]))
        break
    assert seen == [("ADDED", "placed")]
    core.delete_namespaced_pod("placed", namespace, grace_period_seconds=0)
    core.delete_node(name)
    assert refused(lambda: custom.get_namespaced_custom_object(*where, "placed")) == (404, "NotFound")


def main(kubeconfig: str, namespace: str, own: bool) -> None:
    official("config").load_kube_config(kubeconfig)
    for name, run in {**CHECKS, **(OWN_CHECKS if own else {})}.items():
        problem = ""
        try:
            run(namespace)
        except Exception:  # noqa: BLE001 - whatever it is, it is this check's
            problem = traceback.format_exc()
        print(json.dumps({"check": name, "problem": problem}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3:] == ["--own"])
