"""Services: EndpointSlices, Endpoints, and mirrored Endpoints."""

from typing import Any

import msgspec

from situate.core.model.managed import ManagedPod
from situate.core.model.managed_node import ManagedNode
from situate.core.model.services import ManagedEndpoints, ManagedService, ManagedSlice
from situate.core.reconcile.effects import CreateObject, DeleteObject, Effect, UpdateObject
from situate.core.reconcile.endpoints import MIRRORED_BY, MOST_ADDRESSES, MOST_IN_A_SLICE
from situate.core.reconcile.objects import ObjectIndex
from situate.core.reconcile.table import concerned, reconcile

NODE = msgspec.convert({"metadata": {"name": "n", "labels": {"topology.kubernetes.io/zone": "z"}}}, ManagedNode)


def service(ports: list[dict[str, Any]] | None = None, **spec: Any) -> ManagedService:
    given = [{"name": "http", "port": 80, "targetPort": "web"}] if ports is None else ports
    body = {
        "metadata": {"name": "s", "namespace": "d", "uid": "s1", "labels": {"team": "a"}},
        "spec": {"selector": {"app": "a"}, "clusterIP": "10.96.0.9", "ipFamilies": ["IPv4"], "ports": given, **spec},
    }
    return msgspec.convert(body, ManagedService)


def pod(name: str, *, ready: bool = True, port: int = 8080, **more: Any) -> ManagedPod:
    number = int(name.strip("p"))
    body = {
        "metadata": {"name": name, "namespace": "d", "uid": name, "labels": {"app": "a"}, **more.get("metadata", {})},
        "spec": {
            "nodeName": "n",
            "containers": [{"name": "c", "ports": [{"name": "web", "containerPort": port, "protocol": "TCP"}]}],
            **more.get("spec", {}),
        },
        "status": {
            "phase": "Running",
            "podIP": f"10.0.{number // 250}.{number % 250 + 1}",
            "conditions": [{"type": "Ready", "status": "True" if ready else "False"}],
            **more.get("status", {}),
        },
    }
    return msgspec.convert(body, ManagedPod)


def created(effects: tuple[Effect, ...], kind: str) -> list[Any]:
    return [one.body for one in effects if isinstance(one, CreateObject) and one.ref.kind == kind]


def stored(body: Any, kind: type[Any], version: str = "1") -> Any:
    meta = {**body["metadata"], "uid": body["metadata"]["name"], "resourceVersion": version}
    return msgspec.convert({**body, "metadata": meta}, kind)


def settled(one: ManagedService, *others: Any) -> ObjectIndex:
    """All objects after the first call."""
    effects = reconcile(one, ObjectIndex([one, NODE, *others]), 0).effects
    slices = [stored(body, ManagedSlice) for body in created(effects, "EndpointSlice")]
    endpoints = [stored(body, ManagedEndpoints) for body in created(effects, "Endpoints")]
    return ObjectIndex([one, NODE, *others, *slices, *endpoints])


def test_a_slice_and_endpoints_have_the_ready_pods() -> None:
    one = service()
    effects = reconcile(one, ObjectIndex([one, NODE, pod("p1"), pod("p2", ready=False)]), 0).effects
    (body,) = created(effects, "EndpointSlice")
    assert body["metadata"]["labels"] == {
        "team": "a",
        "kubernetes.io/service-name": "s",
        "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
    }
    assert body["metadata"]["ownerReferences"][0]["kind"] == "Service"
    assert body["ports"] == [{"name": "http", "port": 8080, "protocol": "TCP"}]
    first, second = body["endpoints"]
    assert first == {
        "addresses": ["10.0.0.2"],
        "conditions": {"ready": True, "serving": True, "terminating": False},
        "targetRef": {"kind": "Pod", "namespace": "d", "name": "p1", "uid": "p1"},
        "nodeName": "n",
        "zone": "z",
    }
    assert second["conditions"] == {"ready": False, "serving": False, "terminating": False}
    (endpoints,) = created(effects, "Endpoints")
    (subset,) = endpoints["subsets"]
    assert [one["ip"] for one in subset["addresses"]] == ["10.0.0.2"]
    assert [one["ip"] for one in subset["notReadyAddresses"]] == ["10.0.0.3"]
    assert endpoints["metadata"]["labels"]["endpoints.kubernetes.io/managed-by"] == "endpoint-controller"


def test_what_is_right_is_left_alone() -> None:
    one = service()
    for pods in ([], [pod("p1"), pod("p2", ready=False)]):
        assert reconcile(one, settled(one, *pods), 0).effects == ()


def test_without_pods_there_is_an_empty_slice() -> None:
    one = service()
    effects = reconcile(one, ObjectIndex([one]), 0).effects
    (body,) = created(effects, "EndpointSlice")
    assert (body["endpoints"], body["ports"]) == ([], [])


def test_a_change_rewrites_only_the_slice_of_its_pod() -> None:
    one = service()
    pods = [pod(f"p{number}") for number in range(MOST_IN_A_SLICE + 20)]
    objects = settled(one, *pods)
    assert sorted(len(each.endpoints) for each in objects.among(ManagedSlice, "d")) == [20, MOST_IN_A_SLICE]
    objects.put(pod("p3", ready=False))
    effects = reconcile(one, objects, 0).effects
    changed = [each for each in effects if isinstance(each, UpdateObject) and each.ref.kind == "EndpointSlice"]
    assert len(changed) == 1
    assert len(changed[0].patch["endpoints"]) == MOST_IN_A_SLICE


def test_a_pod_that_goes_leaves_its_slice_and_its_room_is_used() -> None:
    one = service()
    objects = settled(one, pod("p1"), pod("p2"))
    objects.drop(ManagedPod, "d", "p1")
    objects.put(pod("p3"))
    (update, endpoints) = reconcile(one, objects, 0).effects
    assert isinstance(update, UpdateObject)
    assert [each["targetRef"]["name"] for each in update.patch["endpoints"]] == ["p2", "p3"]
    assert endpoints.ref.kind == "Endpoints"


def test_pods_that_end_are_left_out_and_pods_that_go_still_serve() -> None:
    one = service()
    going: Any = {"deletionTimestamp": "2026-01-01T00:00:00Z"}
    pods = [pod("p1", status={"phase": "Succeeded"}), pod("p2", metadata=going)]
    effects = reconcile(one, ObjectIndex([one, *pods]), 0).effects
    (body,) = created(effects, "EndpointSlice")
    assert [each["conditions"] for each in body["endpoints"]] == [
        {"ready": False, "serving": True, "terminating": True}
    ]
    assert created(effects, "Endpoints")[0]["subsets"] == []


def test_pods_with_other_ports_are_in_another_slice() -> None:
    one = service()
    effects = reconcile(one, ObjectIndex([one, pod("p1"), pod("p2", port=9090)]), 0).effects
    ports = [body["ports"][0]["port"] for body in created(effects, "EndpointSlice")]
    assert sorted(ports) == [8080, 9090]


def test_a_named_port_that_no_container_has_leads_nowhere() -> None:
    one = service([{"name": "x", "port": 80, "targetPort": "none"}])
    effects = reconcile(one, ObjectIndex([one, pod("p1")]), 0).effects
    assert created(effects, "EndpointSlice")[0]["endpoints"] == []


def test_a_headless_service_says_so_and_names_its_pods() -> None:
    one = service([], clusterIP="None")
    named = pod("p1", spec={"nodeName": "n", "hostname": "web-0", "subdomain": "s"})
    effects = reconcile(one, ObjectIndex([one, named]), 0).effects
    (body,) = created(effects, "EndpointSlice")
    assert body["metadata"]["labels"]["service.kubernetes.io/headless"] == ""
    assert body["endpoints"][0]["hostname"] == "web-0"
    (endpoints,) = created(effects, "Endpoints")
    assert endpoints["subsets"][0]["addresses"][0]["hostname"] == "web-0"


def test_pods_that_are_not_ready_count_if_the_service_says_so() -> None:
    one = service(publishNotReadyAddresses=True)
    effects = reconcile(one, ObjectIndex([one, pod("p1", ready=False)]), 0).effects
    (body,) = created(effects, "EndpointSlice")
    assert body["endpoints"][0]["conditions"] == {"ready": True, "serving": False, "terminating": False}


def test_endpoints_end_at_their_capacity_and_say_so() -> None:
    one = service()
    pods = [pod(f"p{number}") for number in range(MOST_ADDRESSES + 1)]
    (endpoints,) = created(reconcile(one, ObjectIndex([one, *pods]), 0).effects, "Endpoints")
    assert len(endpoints["subsets"][0]["addresses"]) == MOST_ADDRESSES
    assert endpoints["metadata"]["annotations"] == {"endpoints.kubernetes.io/over-capacity": "truncated"}


def test_a_service_without_a_selector_or_with_another_name_is_left_to_others() -> None:
    for one in (service(selector={}), service(type="ExternalName")):
        assert reconcile(one, ObjectIndex([one, pod("p1")]), 0).effects == ()


def test_a_pod_concerns_the_services_that_select_it() -> None:
    one = service()
    assert (ManagedService, "d", "s") in concerned(pod("p1"), ObjectIndex([one]))
    other = pod("p2", metadata={"labels": {"app": "b"}})
    assert (ManagedService, "d", "s") not in concerned(other, ObjectIndex([one]))


def endpoints(**labels: str) -> ManagedEndpoints:
    subset = {"addresses": [{"ip": "10.1.0.1"}], "notReadyAddresses": [{"ip": "10.1.0.2"}], "ports": [{"port": 5432}]}
    meta = {"name": "s", "namespace": "d", "uid": "e1", "resourceVersion": "4", "labels": labels}
    return msgspec.convert({"metadata": meta, "subsets": [subset]}, ManagedEndpoints)


def test_endpoints_that_somebody_wrote_are_mirrored() -> None:
    one, written = service(selector={}), endpoints()
    (effect,) = reconcile(written, ObjectIndex([one, written]), 0).effects
    assert isinstance(effect, CreateObject)
    assert effect.body["metadata"]["labels"]["endpointslice.kubernetes.io/managed-by"] == MIRRORED_BY
    assert [each["conditions"] for each in effect.body["endpoints"]] == [{"ready": True}, {"ready": False}]
    assert effect.body["ports"] == [{"name": "", "protocol": "TCP", "port": 5432}]
    mirrored = stored(effect.body, ManagedSlice)
    assert reconcile(written, ObjectIndex([one, written, mirrored]), 0).effects == ()
    skipped = endpoints(**{"endpointslice.kubernetes.io/skip-mirror": "true"})
    (gone,) = reconcile(skipped, ObjectIndex([one, skipped, mirrored]), 0).effects
    assert isinstance(gone, DeleteObject)


def test_our_endpoints_go_with_their_service() -> None:
    own = endpoints(**{"endpoints.kubernetes.io/managed-by": "endpoint-controller"})
    (effect,) = reconcile(own, ObjectIndex([own]), 0).effects
    assert isinstance(effect, DeleteObject)
    assert (ManagedEndpoints, "d", "s") in concerned(service(), ObjectIndex([own]))
    assert reconcile(endpoints(), ObjectIndex([endpoints()]), 0).effects == ()
