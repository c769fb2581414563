"""The fault proxy is transparent until told otherwise, and its faults are real."""

import http.client
import json
import ssl
import time
import urllib.request
from collections.abc import Iterator

import pytest

from kubernetes.api import Api, RefusedError
from kubernetes.cluster import Cluster
from kubernetes.objects import pod
from kubernetes.parts import wait_until
from kubernetes.proxy import BINDS, Fault, FaultProxy, Faults

BINDING = {"apiVersion": "v1", "kind": "Binding", "target": {"kind": "Node", "name": "node-0"}}


@pytest.fixture
def proxy(cluster: Cluster) -> Iterator[FaultProxy]:
    with FaultProxy(cluster, seed=7) as proxy:
        yield proxy


@pytest.fixture
def through(cluster: Cluster, proxy: FaultProxy) -> Iterator[Api]:
    """The administrator's requests, by way of the proxy."""
    api = Api(proxy.url, cluster.tokens["admin"], ssl.create_default_context(cafile=str(cluster.certificate)))
    yield api
    api.close()


def bind(api: Api, cluster: Cluster, name: str) -> None:
    api.post(f"/api/v1/namespaces/{cluster.namespace}/pods/{name}/binding", BINDING | {"metadata": {"name": name}})


def watch_lines(cluster: Cluster, proxy: FaultProxy, seconds: int) -> list[str]:
    """The names in the events of a watch, which must end by itself."""
    path = f"/api/v1/namespaces/{cluster.namespace}/pods?watch=1&resourceVersion=0&timeoutSeconds={seconds}"
    request = urllib.request.Request(proxy.url + path, headers={"Authorization": f"Bearer {cluster.tokens['admin']}"})
    tls = ssl.create_default_context(cafile=str(cluster.certificate))
    with urllib.request.urlopen(request, timeout=30, context=tls) as response:
        return [json.loads(line)["object"]["metadata"]["name"] for line in response.read().splitlines()]


def test_kubectl_and_kube_scheduler_work_through_it(cluster: Cluster, proxy: FaultProxy) -> None:
    cluster.hollow_nodes(1)
    cluster.kube_scheduler(kubeconfig=cluster.kubeconfig_for(cluster.tokens["system:kube-scheduler"], server=proxy.url))
    cluster.create(pod("a"))
    cluster.wait_for_bound("a")
    admin = cluster.kubeconfig_for(cluster.tokens["admin"], server=proxy.url)
    assert "node-0" in cluster.kubectl("--kubeconfig", str(admin), "get", "pods", "--output=wide")
    assert proxy.counts.watches > 0
    assert sum(n for (method, path), n in proxy.counts.requests.items() if BINDS.of(method, path)) == 1


def test_it_passes_on_who_asks(cluster: Cluster, proxy: FaultProxy) -> None:
    api = Api(proxy.url, cluster.token_for("nobody"), ssl.create_default_context(cafile=str(cluster.certificate)))
    with pytest.raises(RefusedError, match=r"403 Forbidden.*system:serviceaccount"):
        api.get("/api/v1/nodes")
    api.close()


@pytest.mark.parametrize("status", [409, 500])
def test_a_spoiled_bind_is_refused_and_never_reached_the_server(
    cluster: Cluster, proxy: FaultProxy, through: Api, status: int
) -> None:
    proxy.set(Faults(answers=(Fault(BINDS, share=1.0, status=status),)))
    cluster.hollow_nodes(1)
    cluster.create(pod("a"))
    with pytest.raises(RefusedError, match=f"{status}"):
        bind(through, cluster, "a")
    assert cluster.bound() == {}
    proxy.set(Faults())
    bind(through, cluster, "a")
    assert cluster.bound() == {"a": "node-0"}


def test_a_lost_answer_is_lost_after_the_bind(cluster: Cluster, proxy: FaultProxy, through: Api) -> None:
    proxy.set(Faults(answers=(Fault(BINDS, share=1.0, status=500, forwarded=True),)))
    cluster.hollow_nodes(1)
    cluster.create(pod("a"))
    with pytest.raises(RefusedError, match="500"):
        bind(through, cluster, "a")
    assert cluster.bound() == {"a": "node-0"}
    assert proxy.counts.lost == {500: 1}


def test_a_broken_connection_gives_no_answer(cluster: Cluster, proxy: FaultProxy, through: Api) -> None:
    proxy.set(Faults(answers=(Fault(BINDS, share=1.0, status=0, forwarded=True),)))
    cluster.hollow_nodes(1)
    cluster.create(pod("a"))
    with pytest.raises(OSError, match=r"closed|reset|EOF"):
        bind(through, cluster, "a")
    assert cluster.bound() == {"a": "node-0"}


def test_the_share_of_spoiled_binds_is_as_asked_and_the_same_each_time(cluster: Cluster, proxy: FaultProxy) -> None:
    proxy.set(Faults(answers=(Fault(BINDS, 0.2, 409), Fault(BINDS, 0.1, 500))))
    drawn = [proxy._draw("POST", f"/api/v1/namespaces/x/pods/p{i}/binding") for i in range(2000)]
    statuses = [fault.status if fault else 201 for fault in drawn]
    assert 320 < statuses.count(409) < 480
    assert 140 < statuses.count(500) < 260
    with FaultProxy(cluster, seed=7) as again:
        again.set(proxy.faults)
        assert [again._draw("POST", f"/api/v1/namespaces/x/pods/p{i}/binding") for i in range(2000)] == drawn


def test_a_watch_is_whole_when_nothing_is_cut(cluster: Cluster, proxy: FaultProxy) -> None:
    cluster.create(pod("a"), pod("b"))
    assert sorted(watch_lines(cluster, proxy, 1)) == ["a", "b"]


def test_a_watch_is_cut_in_the_middle(cluster: Cluster, proxy: FaultProxy) -> None:
    cluster.create(pod("a"))
    proxy.set(Faults(cut_watches_after_s=0.3))
    with pytest.raises((OSError, http.client.IncompleteRead)):
        watch_lines(cluster, proxy, 60)
    assert proxy.counts.watches_cut == 1


def test_a_closed_door_refuses_and_opens_again_at_the_same_address(proxy: FaultProxy, through: Api) -> None:
    through.get("/version")
    url = proxy.url
    proxy.set(Faults(refuse=True))
    with pytest.raises(OSError, match=r"refused|reset|closed"):
        through.get("/version")
    proxy.set(Faults())
    assert proxy.url == url
    assert through.get("/version")["minor"] == "36"


def test_every_request_can_be_slowed(cluster: Cluster, proxy: FaultProxy, through: Api) -> None:
    through.get("/version")
    proxy.set(Faults(delay_s=0.2))
    begun = time.monotonic()
    through.get("/version")
    assert time.monotonic() - begun >= 0.2


def test_a_watch_survives_until_the_server_dies(cluster: Cluster, proxy: FaultProxy) -> None:
    cluster.hollow_nodes(1)
    scheduler = cluster.kube_scheduler(
        kubeconfig=cluster.kubeconfig_for(cluster.tokens["system:kube-scheduler"], server=proxy.url)
    )
    before = proxy.counts.watches
    cluster.restart_apiserver()
    wait_until(lambda: proxy.counts.watches > before, "kube-scheduler to watch again")
    cluster.create(pod("a"))
    cluster.wait_for_bound("a")
    assert scheduler.running
