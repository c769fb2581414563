"""What is added to new objects, and what is refused, whoever asks."""

from typing import Any

import pytest

from server.registry.stories import (
    ANN,
    CONFIG_MAP,
    JOB,
    NAMESPACE,
    POD,
    World,
    config_map,
    job,
    namespace,
    no,
    pod,
    tell,
)
from situate.core.reconcile.nodes.reports import REPORT
from situate.server.admission.chain import chain
from situate.server.requests import Object, Target
from situate.server.resources import BY_KIND

CLAIM = BY_KIND["v1", "PersistentVolumeClaim"]
SERVICE = BY_KIND["v1", "Service"]


def priority_class(name: str, value: int, default: bool = False) -> Object:
    obj: Object = {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": value,
    }
    return {**obj, "globalDefault": True} if default else obj


def storage_class(name: str, default: bool = True) -> Object:
    annotations = {"storageclass.kubernetes.io/is-default-class": "true" if default else "false"}
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name, "annotations": annotations},
        "provisioner": "x.io/y",
    }


def claim(name: str, **spec: Any) -> Object:
    asked = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, **spec}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name}, "spec": asked}


def event(name: str, space: str) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": name, "namespace": space},
        "involvedObject": {"namespace": space},
    }


async def in_default(world: World) -> None:
    await world.create(namespace("default"))


@pytest.mark.parametrize("make", [lambda: config_map("a", namespace="none"), lambda: event("a", "none")])
def test_nothing_is_created_without_a_namespace(make: Any) -> None:
    async def story(world: World) -> None:
        assert await no(world.create(make())) == (404, "NotFound", 'namespaces "none" not found')

    tell(story, admission=chain)


def test_nothing_is_created_in_a_namespace_that_is_going() -> None:
    async def story(world: World) -> None:
        await world.create(namespace("t"))
        there = await world.create(config_map("a", namespace="t"))
        await world.registry.delete(Target(NAMESPACE, "", "t"), ANN)
        assert await no(world.create(pod("p", namespace="t"))) == (
            403,
            "Forbidden",
            'pods "p" is forbidden: unable to create new content in namespace t because it is being terminated',
        )
        await world.update({**there, "data": {"k": "2"}})
        assert (await world.registry.delete(Target(*_place(there)), ANN)).gone

    tell(story, admission=chain)


def test_nothing_slips_into_a_namespace_that_is_asked_to_go_meanwhile() -> None:
    worlds: list[World] = []

    class Late:
        """Asked last, and slow: somebody deletes the namespace while the others have agreed already."""

        async def admit(self, action: str, target: Target, new: Object | None, old: Object | None, _: object) -> None:
            if action == "create" and target.namespace == "t":
                await worlds[0].registry.delete(Target(NAMESPACE, "", "t"), ANN)

        def version(self, target: Target) -> int | None:
            return None

    async def story(world: World) -> None:
        worlds.append(world)
        await world.create(namespace("t"))
        code, _, message = await no(world.create(config_map("a", namespace="t")))
        assert code == 403
        assert message.endswith("because it is being terminated")
        assert await world.names(CONFIG_MAP, namespace="t") == []

    tell(story, admission=lambda cache: [*chain(cache), Late()])


def _place(obj: Object) -> tuple[Any, str, str]:
    return BY_KIND[obj["apiVersion"], obj["kind"]], obj["metadata"]["namespace"], obj["metadata"]["name"]


@pytest.mark.parametrize("name", ["default", "kube-system", "kube-public", "kube-node-lease"])
def test_some_namespaces_stay(name: str) -> None:
    async def story(world: World) -> None:
        await world.create(namespace(name))
        text = f'namespaces "{name}" is forbidden: this namespace may not be deleted'
        assert await no(world.registry.delete(Target(NAMESPACE, "", name), ANN)) == (403, "Forbidden", text)

    tell(story, admission=chain)


def test_a_pod_gets_the_priority_of_its_class() -> None:
    async def story(world: World) -> None:
        await in_default(world)
        plain = await world.create(pod("plain"))
        assert plain["spec"]["priority"] == 0
        await world.create(priority_class("high", 100))
        named = pod("named")
        named["spec"]["priorityClassName"] = "high"
        assert (await world.create(named))["spec"]["priority"] == 100
        await world.create(priority_class("usual", 7, default=True))
        usual = await world.create(pod("usual"))
        assert (usual["spec"]["priority"], usual["spec"]["priorityClassName"]) == (7, "usual")
        system = pod("system")
        system["spec"]["priorityClassName"] = "system-node-critical"
        assert (await world.create(system))["spec"]["priority"] == 2_000_001_000

    tell(story, admission=chain)


def test_a_priority_that_does_not_fit_is_refused() -> None:
    async def story(world: World) -> None:
        await in_default(world)
        unknown, own = pod("a"), pod("b")
        unknown["spec"]["priorityClassName"] = "none"
        own["spec"]["priority"] = 5
        assert await no(world.create(unknown)) == (
            403,
            "Forbidden",
            'pods "a" is forbidden: no PriorityClass with name none was found',
        )
        code, _, message = await no(world.create(own))
        assert code == 403
        assert message.startswith('pods "b" is forbidden: the integer value of priority (5) must not be provided')
        await world.create(priority_class("one", 1, default=True))
        assert await no(world.create(priority_class("two", 2, default=True))) == (
            403,
            "Forbidden",
            (
                'priorityclasses.scheduling.k8s.io "two" is forbidden: PriorityClass one is already marked as default. '
                "Only one default can exist"
            ),
        )

    tell(story, admission=chain)


def test_a_pod_tolerates_a_lost_node_for_a_while_and_stays_the_same_when_written_again() -> None:
    async def story(world: World) -> None:
        await in_default(world)
        made = await world.create(pod("a"))
        assert [(each["key"], each["tolerationSeconds"]) for each in made["spec"]["tolerations"]] == [
            ("node.kubernetes.io/not-ready", 300),
            ("node.kubernetes.io/unreachable", 300),
        ]
        entries = made["metadata"]["managedFields"]
        assert "f:tolerations" not in entries[0]["fieldsV1"]["f:spec"]
        again = await world.update(pod("a"))
        assert again["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]

    tell(story, admission=chain)


def test_a_job_knows_its_pods_by_its_uid() -> None:
    async def story(world: World) -> None:
        await in_default(world)
        made = await world.create(job("a"))
        uid = made["metadata"]["uid"]
        assert made["spec"]["selector"] == {"matchLabels": {"batch.kubernetes.io/controller-uid": uid}}
        assert made["spec"]["template"]["metadata"]["labels"]["job-name"] == "a"
        assert await world.get(JOB, "a") == made

    tell(story, admission=chain)


def test_a_claim_gets_the_newest_default_class_unless_it_names_one() -> None:
    async def story(world: World) -> None:
        await in_default(world)
        assert "storageClassName" not in (await world.create(claim("early")))["spec"]
        for name in ("b", "a"):
            await world.create(storage_class(name))
        await world.create(storage_class("c", default=False))
        assert (await world.create(claim("first")))["spec"]["storageClassName"] == "a"
        world.later(1)
        await world.create(storage_class("new"))
        assert (await world.create(claim("second")))["spec"]["storageClassName"] == "new"
        named = await world.create(claim("named", storageClassName="c"))
        assert named["spec"]["storageClassName"] == "c"
        assert (await world.create(claim("none", storageClassName="")))["spec"]["storageClassName"] == ""

    tell(story, admission=chain)


def test_admission_is_asked_again_when_a_write_lost_a_race() -> None:
    asked: list[str] = []

    class Slow:
        async def admit(self, action: str, target: Target, new: Object | None, old: Object | None, _: object) -> None:
            asked.append(action)
            if len(asked) == 2:  # somebody else is quicker, once
                await world_of[0].registry.modify(target, _label, ANN)

        def version(self, target: Target) -> int | None:
            return None

    def _label(obj: Object, _: object) -> Object:
        obj["metadata"]["labels"] = {"by": "other"}
        return obj

    world_of: list[World] = []

    async def story(world: World) -> None:
        world_of.append(world)
        await world.create(pod("a"))
        target = Target(POD, "default", "a")
        done = await world.registry.patch(target, "merge", {"metadata": {"annotations": {"x": "y"}}}, ANN)
        metadata = done.stored.object(POD)["metadata"]
        assert (metadata["labels"], metadata["annotations"]) == ({"by": "other"}, {"x": "y"})
        assert asked == ["create", "update", "update"]

    tell(story, admission=lambda _: [Slow()])


def service(name: str, **spec: Any) -> Object:
    ports = [{"port": 80, "protocol": "TCP"}]
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": {"ports": ports, **spec}}


def test_no_two_services_have_the_same_address_or_node_port() -> None:
    async def told(world: World) -> None:
        target = Target(SERVICE, "default")
        await world.registry.create(Target(NAMESPACE), namespace("default"), ANN)
        made = [
            (await world.registry.create(target, service(f"s{at}", type="NodePort"), ANN)).object(SERVICE)
            for at in range(60)
        ]
        assert len({one["spec"]["clusterIP"] for one in made}) == 60
        assert len({one["spec"]["ports"][0]["nodePort"] for one in made}) == 60
        taken = made[0]["spec"]["clusterIP"]
        code, _, text = await no(world.registry.create(target, service("other", clusterIP=taken), ANN))
        assert code == 422
        assert f"failed to allocate IP {taken}: provided IP is already allocated" in text

    tell(told, admission=chain)


def test_a_new_pod_has_no_report_of_another_one() -> None:
    async def story(world: World) -> None:
        await in_default(world)
        copied = pod("copy")
        copied["metadata"]["annotations"] = {REPORT: "1.99", "mine": "kept"}
        made = await world.create(copied)
        assert made["metadata"]["annotations"] == {"mine": "kept"}

    tell(story, admission=chain)


def test_only_a_status_write_is_a_report() -> None:
    async def story(world: World) -> None:
        await in_default(world)
        await world.create(pod("p"))

        async def annotated(report: str | None, subresource: str) -> str | None:
            obj = await world.get(POD, "p")
            obj["metadata"]["annotations"] = {} if report is None else {REPORT: report}
            changed = await world.update(obj, subresource)
            found: str | None = changed["metadata"].get("annotations", {}).get(REPORT)
            return found

        assert await annotated("1.7", "") is None
        assert await annotated("1.2", "status") == "1.2"
        assert await annotated("1.999999", "") == "1.2"
        assert await annotated(None, "") == "1.2"

    tell(story, admission=chain)


def test_a_node_port_is_of_one_service() -> None:
    def service(name: str, *numbers: int) -> Object:
        ports = [{"name": f"p{number}", "port": number, "nodePort": number} for number in numbers]
        metadata = {"name": name, "namespace": "default"}
        return {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": metadata,
            "spec": {"type": "NodePort", "ports": ports},
        }

    async def story(world: World) -> None:
        await world.create(namespace("default"))
        made = await world.create(service("a", 30_080))
        refusal = "spec.ports[{}].nodePort: Invalid value: 30080: provided port is already allocated"
        code, _, text = await no(world.create(service("b", 30_081, 30_080)))
        assert (code, text) == (422, f'Service "b" is invalid: {refusal.format(1)}')
        other = await world.create(service("b", 30_081))
        other["spec"]["ports"][0]["nodePort"] = 30_080
        code, _, text = await no(world.update(other))
        assert (code, text) == (422, f'Service "b" is invalid: {refusal.format(0)}')
        made["metadata"]["labels"] = {"a": "b"}
        await world.update(made)

    tell(story, admission=chain)
