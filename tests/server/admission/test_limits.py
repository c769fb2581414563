"""LimitRanges: default amounts, and amounts beyond the limits. The texts are kube-apiserver's."""

from typing import Any

import pytest

from server.registry.stories import World, namespace, no, pod, tell
from situate.server.admission.chain import chain
from situate.server.requests import Object
from situate.server.resources import BY_KIND

LIMIT_RANGE = BY_KIND["v1", "LimitRange"]


def limit_range(*limits: Any, name: str = "l") -> Object:
    return {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": name}, "spec": {"limits": list(limits)}}


def asking(name: str = "p", *, count: int = 1, **resources: Any) -> Object:
    body = pod(name)
    body["spec"]["containers"] = [{"name": f"c{at}", "image": "i", "resources": resources} for at in range(count)]
    return body


def claim(storage: str) -> Object:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": storage}}}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "a"}, "spec": spec}


def test_containers_get_the_defaults_of_their_namespace_and_the_pod_says_so() -> None:
    async def story(world: World) -> None:
        await world.create(namespace("default"))
        await world.create(
            limit_range(
                {"type": "Container", "default": {"cpu": "1", "memory": "1Gi"}, "defaultRequest": {"cpu": "100m"}}
            )
        )
        made = await world.create(asking(requests={"memory": "1Mi"}))
        (container,) = made["spec"]["containers"]
        assert container["resources"] == {
            "requests": {"memory": "1Mi", "cpu": "100m"},
            "limits": {"cpu": "1", "memory": "1Gi"},
        }
        said = "LimitRanger plugin set: cpu request for container c0; cpu, memory limit for container c0"
        assert made["metadata"]["annotations"] == {"kubernetes.io/limit-ranger": said}

    tell(story, admission=chain)


def test_a_limit_range_counts_from_its_creation_until_its_end() -> None:
    async def story(world: World) -> None:
        await world.create(namespace("default"))
        assert "annotations" not in (await world.create(pod("a")))["metadata"]
        await world.create(limit_range({"type": "Container", "default": {"cpu": "1"}}))
        assert (await world.create(pod("b")))["spec"]["containers"][0]["resources"]["limits"] == {"cpu": "1"}

    tell(story, admission=chain)


@pytest.mark.parametrize(
    "limit, body, why",
    [
        pytest.param(
            {"type": "Container", "max": {"cpu": "1"}},
            asking(limits={"cpu": "2"}),
            "maximum cpu usage per Container is 1, but limit is 2",
            id="a limit beyond the maximum",
        ),
        pytest.param(
            {"type": "Container", "min": {"memory": "1Mi"}, "defaultRequest": {"memory": "2Mi"}},
            asking(requests={"memory": "1Ki"}, limits={"memory": "1Gi"}),
            "minimum memory usage per Container is 1Mi, but request is 1Ki",
            id="a request below the minimum",
        ),
        pytest.param(
            {"type": "Pod", "max": {"cpu": "1500m", "memory": "1Gi"}},
            asking(count=2, requests={"cpu": "1"}, limits={"cpu": "1", "memory": "1Gi"}),
            "[maximum cpu usage per Pod is 1500m, but limit is 2, "
            "maximum memory usage per Pod is 1Gi, but limit is 2Gi]",
            id="sums beyond the maximum",
        ),
        pytest.param(
            {"type": "Pod", "max": {"cpu": "1"}},
            asking(),
            "maximum cpu usage per Pod is 1.  No limit is specified",
            id="no limit",
        ),
        pytest.param(
            {"type": "Pod", "min": {"cpu": "1"}},
            asking(),
            "minimum cpu usage per Pod is 1.  No request is specified",
            id="no request",
        ),
        pytest.param(
            {"type": "Container", "maxLimitRequestRatio": {"cpu": "2"}},
            asking(requests={"cpu": "1"}, limits={"cpu": "3"}),
            "cpu max limit to request ratio per Container is 2, but provided ratio is 3.000000",
            id="a ratio",
        ),
        pytest.param(
            {"type": "Container", "maxLimitRequestRatio": {"cpu": "2"}},
            asking(),
            "cpu max limit to request ratio per Container is 2, but no request is specified or request is 0",
            id="a ratio to nothing",
        ),
    ],
)
def test_a_pod_beyond_the_limits_is_refused(limit: Any, body: Object, why: str) -> None:
    async def story(world: World) -> None:
        await world.create(namespace("default"))
        await world.create(limit_range(limit))
        assert await no(world.create(body)) == (403, "Forbidden", f'pods "p" is forbidden: {why}')

    tell(story, admission=chain)


def test_claims_are_limited_when_they_are_created_and_when_they_grow() -> None:
    async def story(world: World) -> None:
        await world.create(namespace("default"))
        limit = {"type": "PersistentVolumeClaim", "min": {"storage": "1Gi"}, "max": {"storage": "2Gi"}}
        await world.create(limit_range(limit))
        _, _, small = await no(world.create(claim("1Mi")))
        why = "minimum storage usage per PersistentVolumeClaim is 1Gi, but request is 1Mi"
        assert small == f'persistentvolumeclaims "a" is forbidden: {why}'
        made = await world.create(claim("1Gi"))
        made["spec"]["resources"]["requests"]["storage"] = "3Gi"
        _, _, large = await no(world.update(made))
        assert large.endswith("maximum storage usage per PersistentVolumeClaim is 2Gi, but request is 3Gi")

    tell(story, admission=chain)
