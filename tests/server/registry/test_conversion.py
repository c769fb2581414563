"""Things that are served in several versions are one thing."""

from typing import Any

import pytest

from server.registry.stories import ANN, World, tell
from situate.server.registry.conversion import from_stored, to_stored
from situate.server.requests import Target, WriteOptions
from situate.server.resources import BY_KIND

CORE_EVENT = BY_KIND["v1", "Event"]
EVENT = BY_KIND["events.k8s.io/v1", "Event"]
BETA = BY_KIND["scheduling.k8s.io/v1beta1", "PodGroup"]
ALPHA = BY_KIND["scheduling.k8s.io/v1alpha2", "PodGroup"]

CORE: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Event",
    "metadata": {"name": "e"},
    "involvedObject": {"kind": "Pod", "namespace": "default", "name": "p"},
    "reason": "Scheduled",
    "message": "assigned",
    "source": {"component": "default-scheduler"},
    "firstTimestamp": "2026-01-02T12:00:00Z",
    "lastTimestamp": "2026-01-02T12:00:00Z",
    "count": 2,
    "type": "Normal",
}


def test_an_event_is_the_same_in_both_groups() -> None:
    async def story(world: World) -> None:
        await world.registry.create(Target(CORE_EVENT, "default"), CORE, ANN)
        held = await world.registry.get(Target(EVENT, "default", "e"))
        event = held.object(EVENT)
        assert (event["apiVersion"], event["note"], event["deprecatedCount"]) == ("events.k8s.io/v1", "assigned", 2)
        assert event["regarding"]["name"] == "p"
        assert event["deprecatedSource"] == {"component": "default-scheduler"}
        assert b'"note":"assigned"' in held.to_json(EVENT)
        assert b'"message":"assigned"' in held.to_json(CORE_EVENT)
        assert held.to_item(EVENT).startswith(b'{"metadata":{')
        target = Target(EVENT, "default", "e")
        series = {"count": 3, "lastObservedTime": "2026-01-02T12:00:01.000000Z"}
        await world.registry.patch(target, "merge", {"series": series}, ANN, WriteOptions())
        core = await world.get(CORE_EVENT, "e")
        assert (core["message"], core["series"]["count"]) == ("assigned", 3)

    tell(story)


@pytest.mark.parametrize(
    "alpha, beta",
    [
        ({"disruptionMode": "Pod"}, {"disruptionMode": {"single": {}}}),
        ({"disruptionMode": "PodGroup"}, {"disruptionMode": {"all": {}}}),
        (
            {"podGroupTemplateRef": {"workload": {"workloadName": "w", "podGroupTemplateName": "t"}}},
            {"workloadRef": {"workloadName": "w", "templateName": "t"}},
        ),
        ({"schedulingPolicy": {"gang": {"minCount": 3}}}, {"schedulingPolicy": {"gang": {"minCount": 3}}}),
    ],
)
def test_a_pod_group_is_the_same_in_both_versions(alpha: dict[str, Any], beta: dict[str, Any]) -> None:
    to_beta, to_alpha = to_stored(ALPHA), from_stored(ALPHA)
    assert to_beta is not None
    assert to_alpha is not None
    assert to_beta({"metadata": {}, "spec": alpha})["spec"] == beta
    assert to_alpha({"metadata": {}, "spec": beta})["spec"] == alpha
    assert from_stored(BETA) is to_stored(BETA) is None
