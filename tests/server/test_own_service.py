"""The Service `default/kubernetes`, and the servers behind it."""

from typing import Any

from server.registry.stories import ANN, World, namespace, tell
from situate.server.own_service import ENDPOINTS, LEASE, SERVICE, SLICE, OwnService
from situate.server.requests import Target


async def _namespaces(world: World) -> None:
    await world.create(namespace("default"))
    await world.create(namespace("kube-system"))


def test_a_server_is_behind_its_service() -> None:
    async def story(world: World) -> None:
        await _namespaces(world)
        await OwnService(world.registry, "192.0.2.7", 7443, "one", shared=False).publish()
        service = await world.get(SERVICE, "kubernetes")
        assert service["metadata"]["labels"] == {"component": "apiserver", "provider": "kubernetes"}
        assert service["spec"]["clusterIPs"] == ["10.96.0.1"]
        assert service["spec"]["ports"] == [{"name": "https", "port": 443, "protocol": "TCP", "targetPort": 7443}]
        port: Any = {"name": "https", "port": 7443, "protocol": "TCP"}
        subsets = (await world.get(ENDPOINTS, "kubernetes"))["subsets"]
        assert subsets == [{"addresses": [{"ip": "192.0.2.7"}], "ports": [port]}]
        found = await world.get(SLICE, "kubernetes")
        assert found["endpoints"] == [{"addresses": ["192.0.2.7"], "conditions": {"ready": True}}]
        assert found["ports"] == [port]
        assert await world.names(LEASE, "kube-system") == []

    tell(story)


def test_what_is_right_is_not_written_again_and_what_was_deleted_comes_back() -> None:
    async def story(world: World) -> None:
        await _namespaces(world)
        own = OwnService(world.registry, "192.0.2.7", 7443, "one", shared=False)
        await own.publish()
        before = world.registry.cache.revision
        await own.publish()
        assert world.registry.cache.revision == before
        await world.registry.delete(Target(SLICE, "default", "kubernetes"), ANN)
        await own.publish()
        assert (await world.get(SLICE, "kubernetes"))["endpoints"]

    tell(story)


def test_a_new_port_replaces_the_old_one_and_labels_of_others_stay() -> None:
    async def story(world: World) -> None:
        await _namespaces(world)
        await OwnService(world.registry, "192.0.2.7", 7443, "one", shared=False).publish()
        service = await world.get(SERVICE, "kubernetes")
        service["metadata"]["labels"]["mine"] = "yes"
        await world.update(service)
        await OwnService(world.registry, "192.0.2.7", 8443, "one", shared=False).publish()
        service = await world.get(SERVICE, "kubernetes")
        assert service["spec"]["ports"][0]["targetPort"] == 8443
        assert service["metadata"]["labels"]["mine"] == "yes"
        assert (await world.get(SLICE, "kubernetes"))["ports"][0]["port"] == 8443

    tell(story)


def test_a_server_without_an_address_of_its_own_has_no_endpoints() -> None:
    async def story(world: World) -> None:
        await _namespaces(world)
        await OwnService(world.registry, "127.0.0.1", 7443, "one", shared=False).publish()
        assert "subsets" not in await world.get(ENDPOINTS, "kubernetes")
        assert not (await world.get(SLICE, "kubernetes")).get("endpoints")

    tell(story)


def test_servers_of_one_store_are_all_there_until_they_no_longer_renew() -> None:
    now = [1_000.0]

    async def story(world: World) -> None:
        await _namespaces(world)
        one = OwnService(world.registry, "192.0.2.7", 7443, "one", shared=True, clock=lambda: now[0])
        two = OwnService(world.registry, "192.0.2.8", 7443, "two", shared=True, clock=lambda: now[0])

        async def addresses() -> list[str]:
            return [one["addresses"][0] for one in (await world.get(SLICE, "kubernetes"))["endpoints"]]

        await one.publish()
        await two.publish()
        assert await addresses() == ["192.0.2.7", "192.0.2.8"]
        await one.publish()
        assert await addresses() == ["192.0.2.7", "192.0.2.8"]
        now[0] += 61
        await one.publish()
        assert await addresses() == ["192.0.2.7"]

    tell(story)
