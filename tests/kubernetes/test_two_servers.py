"""Two of situate's servers on one etcd: either will do, also in the middle of a watch; one of them schedules."""

import http.client
import json
import ssl
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from kubernetes.api import Json
from kubernetes.cluster import Cluster
from kubernetes.objects import node, pod
from kubernetes.own_cluster import OwnCluster
from kubernetes.parts import wait_until
from kubernetes.test_real_clients import deployment
from store.etcd_server import Etcd

CONFIGS = "/api/v1/namespaces/default/configmaps"
LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/situate-scheduler"
CALM_S = 1.5

Servers = tuple[OwnCluster, OwnCluster]


def two(folder: Path, *flags: str) -> Iterator[Servers]:
    with Etcd(folder / "etcd") as etcd:
        all_flags = ("--store", f"etcd://{etcd.endpoints[0]}/situate", *flags)
        with (
            OwnCluster(folder / "one", *all_flags) as one,
            OwnCluster(folder / "other", *all_flags, trusts=one) as other,
        ):
            yield one, other


@pytest.fixture(scope="module")
def plain(control_plane: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    """The API alone. (`control_plane` is asked for so that this is left out where there are no real parts.)"""
    yield from two(tmp_path_factory.mktemp("plain"))


@pytest.fixture
def whole(control_plane: Cluster, tmp_path: Path) -> Iterator[Servers]:
    """Each with a scheduler and controllers inside."""
    yield from two(tmp_path, "--with", "scheduler", "--with", "controllers")


def config(name: str, value: int) -> Json:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"value": str(value)}}


def test_what_one_writes_the_other_serves_at_once(plain: Servers) -> None:
    for number in range(40):
        writer, reader = plain[number % 2], plain[1 - number % 2]
        made = writer.api.post(CONFIGS, config(f"at-once-{number}", number))
        listed = {item["metadata"]["name"]: item for item in reader.api.items(CONFIGS)}
        assert listed[f"at-once-{number}"]["metadata"]["uid"] == made["metadata"]["uid"]
        made["data"]["value"] = "changed"
        put = reader.api.put(f"{CONFIGS}/at-once-{number}", made)
        read = writer.api.get(f"{CONFIGS}/at-once-{number}")
        assert (read["data"], read["metadata"]["resourceVersion"]) == (put["data"], put["metadata"]["resourceVersion"])


def test_what_was_changed_by_way_of_the_other_is_a_conflict(plain: Servers) -> None:
    one, other = plain
    made = one.api.post(CONFIGS, config("fought-over", 0))
    other.api.patch(f"{CONFIGS}/fought-over", {"data": {"value": "1"}})
    with pytest.raises(Exception, match="409 Conflict"):
        one.api.put(f"{CONFIGS}/fought-over", made)


class Watch:
    """One watch of ConfigMaps on one server, from a version on."""

    def __init__(self, server: OwnCluster, version: str) -> None:
        tls = ssl.create_default_context(cafile=str(server.certificate))
        self._connection = http.client.HTTPSConnection(urlsplit(server.url).netloc, timeout=30, context=tls)
        headers = {"Authorization": f"Bearer {server.tokens['admin']}"}
        self._connection.request("GET", f"{CONFIGS}?watch=true&resourceVersion={version}", headers=headers)
        self._response = self._connection.getresponse()
        assert self._response.status == http.client.OK

    def next(self) -> Json | None:
        """None: the connection broke, or ended."""
        try:
            line = self._response.readline()
        except (OSError, http.client.HTTPException):
            return None
        event: Json | None = json.loads(line) if line.endswith(b"\n") else None
        return event

    def close(self) -> None:
        self._connection.close()


def test_a_watch_goes_on_at_the_other_server_when_one_is_killed(control_plane: Cluster, tmp_path: Path) -> None:
    with Etcd(tmp_path / "etcd") as etcd:
        store = ("--store", f"etcd://{etcd.endpoints[0]}/situate")
        with OwnCluster(tmp_path / "one", *store) as one, OwnCluster(tmp_path / "other", *store, trusts=one) as other:
            version = one.api.post(CONFIGS, config("counted", 0))["metadata"]["resourceVersion"]
            watch = Watch(one, version)
            seen: list[int] = []

            def follow(until: int) -> None:
                nonlocal version
                while not seen or seen[-1] < until:
                    event = watch.next()
                    if event is None:
                        return
                    seen.append(int(event["object"]["data"]["value"]))
                    version = event["object"]["metadata"]["resourceVersion"]

            for number in range(1, 31):
                other.api.patch(f"{CONFIGS}/counted", {"data": {"value": str(number)}})
                if number == 10:
                    follow(5)
                    one.kill_apiserver()
            follow(30)  # what is left of the connection that broke
            watch.close()
            watch = Watch(other, version)
            follow(30)
            watch.close()
            assert seen == list(range(1, 31)), "nothing twice, nothing left out"


def lease(server: OwnCluster) -> tuple[str, int]:
    """Who holds the scheduler's, and in which term."""
    spec = server.api.get(LEASE)["spec"]
    return spec.get("holderIdentity", ""), spec["leaseTransitions"]


def test_of_two_schedulers_inside_servers_one_leads_and_the_other_takes_over(whole: Servers) -> None:
    one, other = whole
    one.create(node("n"), pod("a"))
    one.wait_for_bound("a")
    first, term = lease(other)
    assert first
    assert term == 1, "whoever came second did not take it"
    one.apiserver.stop()  # the first to come was the first to lead; it lets go of the lease
    other.create(pod("b"))
    other.wait_for_bound("b")
    second, term = lease(other)
    assert second not in ("", first)
    assert term == 2


def test_controllers_in_two_servers_make_what_is_asked_for_and_come_to_rest(whole: Servers) -> None:
    one, other = whole
    one.create(*(node(f"n-{number}") for number in range(2)))
    one.kwok()
    one.create(deployment("web", 6, "registry.test/web:1"))
    wait_until(lambda: len(one.bound()) == 6, "its pods to be bound")
    versions = [0]

    def calm() -> bool:
        time.sleep(CALM_S)
        found = (
            *one.api.items("/apis/apps/v1/replicasets"),
            *one.api.items("/apis/apps/v1/deployments"),
            *other.pods(),
        )
        versions.append(max(int(item["metadata"]["resourceVersion"]) for item in found))
        return versions[-1] == versions[-2]

    wait_until(calm, "nobody to change anything any more")
    assert len(other.pods()) == 6
    assert len(one.api.items("/apis/apps/v1/replicasets")) == 1
    one.api.delete("/apis/apps/v1/namespaces/default/deployments/web")
    wait_until(lambda: other.pods() == [], "what it owned to go after it")
