"""ResourceQuotas: what is refused, in kube-apiserver's words, and that no account is ever overspent."""

import asyncio
from itertools import count
from typing import Any

import pytest

from server.registry.stories import ANN, POD, World, namespace, no, pod, tell
from situate.server.admission.chain import chain
from situate.server.errors import StatusError
from situate.server.placing.bind_transaction import BindTransactions
from situate.server.quota.settling import QuotaSettling, settle
from situate.server.registry.batch import Creation
from situate.server.requests import Object, Target
from situate.server.resources import BY_KIND

QUOTA = BY_KIND["v1", "ResourceQuota"]


def quota(name: str = "q", hard: Any = None, **spec: Any) -> Object:
    meta = {"name": name}
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": meta, "spec": {"hard": hard or {}, **spec}}


def asking(name: str, spec: Any = None, **resources: Any) -> Object:
    body = pod(name)
    body["spec"].update(spec or {})
    body["spec"]["containers"] = [{"name": "c", "image": "i", "resources": resources}]
    return body


async def begin(world: World, *quotas: Object) -> None:
    await world.create(namespace("default"))
    for one in quotas:
        await world.create(one)
        await settle(world.registry, "default", one["metadata"]["name"])


async def used(world: World, name: str = "q") -> Any:
    return (await world.get(QUOTA, name))["status"]["used"]


def test_a_pod_that_names_a_missing_node_does_not_come_around_the_quota() -> None:
    """It has failed from the beginning, and what has failed is not counted."""

    async def story(world: World) -> None:
        await begin(world, quota(hard={"pods": "1"}))
        failed = await world.create(pod("a", "gone"))
        assert failed["status"]["phase"] == "Failed"
        assert await used(world) == {"pods": "0"}
        await world.create(pod("b"))
        code, _, text = await no(world.create(pod("c", "gone")))
        assert (code, text) == (
            403,
            'pods "c" is forbidden: exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1',
        )

    numbers = count()
    tell(story, admission=chain, extension=BindTransactions(lambda: 0, lambda: str(next(numbers))))


def test_a_pod_beyond_the_quota_is_refused_and_one_within_is_counted() -> None:
    async def story(world: World) -> None:
        await begin(world, quota(hard={"pods": "3", "requests.cpu": "1", "limits.memory": "1Gi"}))
        assert await used(world) == {"pods": "0", "requests.cpu": "0", "limits.memory": "0"}
        await world.create(asking("a", requests={"cpu": "600m"}, limits={"memory": "512Mi"}))
        assert await used(world) == {"pods": "1", "requests.cpu": "600m", "limits.memory": "512Mi"}
        code, reason, text = await no(world.create(asking("b", requests={"cpu": "500m"}, limits={"memory": "600Mi"})))
        assert (code, reason) == (403, "Forbidden")
        assert text == (
            'pods "b" is forbidden: exceeded quota: q, requested: limits.memory=600Mi,requests.cpu=500m, '
            "used: limits.memory=512Mi,requests.cpu=600m, limited: limits.memory=1Gi,requests.cpu=1"
        )
        _, _, text = await no(world.create(pod("b")))
        assert text == (
            'pods "b" is forbidden: failed quota: q: must specify limits.memory for: c; requests.cpu for: c'
        )

    tell(story, admission=chain)


def test_the_account_goes_down_when_a_pod_ends_or_is_deleted() -> None:
    async def story(world: World) -> None:
        await begin(world, quota(hard={"pods": "2", "count/pods": "5"}))
        first = await world.create(pod("a"))
        await world.create(pod("b"))
        assert (await no(world.create(pod("c"))))[0] == 403
        await world.update({**first, "status": {"phase": "Succeeded"}}, "status")
        assert await used(world) == {"pods": "1", "count/pods": "2"}
        await world.registry.delete(Target(POD, "default", "a"), ANN)
        await world.registry.delete(Target(POD, "default", "b"), ANN)
        assert await used(world) == {"pods": "0", "count/pods": "0"}

    tell(story, admission=chain)


@pytest.mark.parametrize(
    "spec, counted, not_counted",
    [
        pytest.param(
            {"scopes": ["Terminating"]}, {"activeDeadlineSeconds": 5}, {}, id="pods with an end, and those without"
        ),
        pytest.param(
            {"scopeSelector": {"matchExpressions": [{"scopeName": "NotTerminating", "operator": "Exists"}]}},
            {},
            {"activeDeadlineSeconds": 5},
            id="a selector with a scope is as good as the scope",
        ),
    ],
)
def test_a_quota_counts_what_is_in_its_scope(spec: Any, counted: Any, not_counted: Any) -> None:
    async def story(world: World) -> None:
        await begin(world, quota(hard={"pods": "1"}, **spec))
        await world.create(asking("a", not_counted))
        await world.create(asking("b", counted))
        assert await used(world) == {"pods": "1"}
        await world.create(asking("c", not_counted))
        assert (await no(world.create(asking("d", counted))))[0] == 403

    tell(story, admission=chain)


def test_concurrent_creates_and_batches_do_not_overspend() -> None:
    async def story(world: World) -> None:
        await begin(world, quota(hard={"pods": "10"}))
        alone = [world.create(pod(f"a{at}")) for at in range(20)]
        batch = world.registry.create_each([Creation(Target(POD, "default"), pod(f"b{at}")) for at in range(20)], ANN)
        outcomes = await asyncio.gather(*alone, return_exceptions=True)
        made = sum(not isinstance(one, Exception) for one in (*outcomes, *await batch))
        assert made == len(await world.names(POD)) == 10
        assert await used(world) == {"pods": "10"}
        for one in outcomes:
            assert isinstance(one, dict | StatusError)

    tell(story, admission=chain)


def test_objects_of_any_kind_are_counted_by_name_and_group() -> None:
    async def story(world: World) -> None:
        await begin(world, quota(hard={"count/deployments.apps": "0", "configmaps": "1"}))
        meta = {"name": "m"}
        await world.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta})
        template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
        deployment = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
        _, _, text = await no(
            world.create({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta, "spec": deployment})
        )
        assert text == (
            'deployments.apps "m" is forbidden: exceeded quota: q, requested: count/deployments.apps=1, '
            "used: count/deployments.apps=0, limited: count/deployments.apps=0"
        )
        assert await used(world) == {"count/deployments.apps": "0", "configmaps": "1"}

    tell(story, admission=chain)


def test_the_controller_counts_what_was_there_before_the_quota_and_follows_its_spec() -> None:
    async def story(world: World) -> None:
        await world.create(namespace("default"))
        await world.create(asking("a", requests={"cpu": "1"}))
        running = asyncio.create_task(QuotaSettling(world.registry).run())
        made = await world.create(quota(hard={"pods": "5"}))
        watching = await world.watch(QUOTA, resource_version=made["metadata"]["resourceVersion"])
        event = await anext(watching)
        assert event.stored is not None
        settled = event.stored.object(QUOTA)
        assert settled["status"] == {"hard": {"pods": "5"}, "used": {"pods": "1"}}
        await world.update({**settled, "spec": {"hard": {"pods": "5", "cpu": "2"}}})
        await anext(watching)
        await anext(watching)
        assert (await world.get(QUOTA, "q"))["status"] == {
            "hard": {"pods": "5", "cpu": "2"},
            "used": {"pods": "1", "cpu": "1"},
        }
        running.cancel()

    tell(story, admission=chain)
