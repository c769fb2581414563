"""HorizontalPodAutoscalers in autoscaling/v1, as kube-apiserver v1.36 converts them: data/autoscalers.json."""

import json
from pathlib import Path
from typing import Any

import pytest

from server.registry.stories import ANN, World, tell
from situate.server.errors import StatusError
from situate.server.kinds.autoscaling.versions import ANNOTATIONS, CONDITIONS, METRICS, to_v1, to_v2
from situate.server.requests import Target
from situate.server.resources import BY_KIND

V1 = BY_KIND["autoscaling/v1", "HorizontalPodAutoscaler"]
V2 = BY_KIND["autoscaling/v2", "HorizontalPodAutoscaler"]
RECORDED: dict[str, list[dict[str, Any]]] = json.loads(
    (Path(__file__).parent / "data" / "autoscalers.json").read_text()
)
EVERY = [*RECORDED["v2"], *RECORDED["v1"]]


def spoken(value: Any) -> Any:
    """Without what Go writes for a field that is empty."""
    if isinstance(value, dict):
        found = {name: spoken(one) for name, one in value.items()}
        return {name: one for name, one in found.items() if one not in (None, "0", 0, "", {}, [])}
    return [spoken(one) for one in value] if isinstance(value, list) else value


def told_apart(obj: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """The object without the annotations of conversion, and what those say."""
    notes = obj["metadata"].get("annotations", {})
    said = {name: spoken(json.loads(notes[name])) for name in ANNOTATIONS if name in notes}
    rest = {name: value for name, value in notes.items() if name not in ANNOTATIONS}
    whole = {name: value for name, value in obj.items() if name not in ("apiVersion", "kind")}
    return spoken({**whole, "metadata": {**obj["metadata"], "annotations": rest}}), said


def in_order(obj: dict[str, Any]) -> dict[str, Any]:
    """v1 does not say where among the metrics that of the CPU stands; here it is last, as in kube-apiserver."""
    metrics = sorted(obj["spec"]["metrics"], key=lambda one: bool(one.get("resource", {}).get("name") == "cpu"))
    return {**obj, "spec": {**obj["spec"], "metrics": metrics}}


@pytest.mark.parametrize("case", EVERY)
def test_v1_shows_what_kube_apiserver_shows(case: dict[str, Any]) -> None:
    assert told_apart(to_v1(case["v2"])) == told_apart(case["v1"])


@pytest.mark.parametrize("case", EVERY)
def test_what_v1_shows_becomes_the_same_object_again(case: dict[str, Any]) -> None:
    expected = in_order(case["v2"])
    assert told_apart(in_order(to_v2(case["v1"]))) == told_apart(expected)
    assert told_apart(in_order(to_v2(to_v1(case["v2"])))) == told_apart(expected)


@pytest.mark.parametrize("case", RECORDED["v1"])
def test_a_server_takes_v1_and_stores_v2(case: dict[str, Any]) -> None:
    async def story(world: World) -> None:
        name = case["posted"]["metadata"]["name"]
        await world.registry.create(Target(V1, "default"), case["posted"], ANN)
        stored = await world.get(V2, name)
        assert spoken(stored["spec"]) == spoken(case["v2"]["spec"])
        assert stored["metadata"].get("annotations") == case["v2"]["metadata"].get("annotations")
        shown = await world.get(V1, name)
        assert (shown["apiVersion"], shown["spec"]) == ("autoscaling/v1", case["v1"]["spec"])

    tell(story)


def test_what_annotations_say_is_validated() -> None:
    async def story(world: World) -> None:
        metrics = json.dumps([{"type": "Pods", "pods": {"metricName": "a/b", "targetAverageValue": "-1"}}])
        body = {**RECORDED["v1"][0]["posted"], "metadata": {"name": "bad", "annotations": {METRICS: metrics}}}
        with pytest.raises(StatusError) as no:
            await world.registry.create(Target(V1, "default"), body, ANN)
        assert {one.field for one in no.value.causes} == {
            "spec.metrics[0].pods.metric.name",
            "spec.metrics[0].pods.target.averageValue",
        }

    tell(story)


def test_annotations_do_not_set_the_status() -> None:
    conditions = json.dumps([{"type": "AbleToScale", "status": "True"}])
    forged = {"mine": "yes", CONDITIONS: conditions}

    async def story(world: World) -> None:
        body = {**RECORDED["v1"][0]["posted"], "metadata": {"name": "a", "annotations": forged}}
        await world.registry.create(Target(V1, "default"), body, ANN)
        assert "conditions" not in (await world.get(V2, "a"))["status"]
        status = {"desiredReplicas": 1, "conditions": [{"type": "ScalingActive", "status": "False"}]}
        await world.registry.patch(Target(V2, "default", "a", "status"), "merge", {"status": status}, ANN)
        held = await world.get(V1, "a")
        held["metadata"]["annotations"] = forged
        await world.registry.update(Target(V1, "default", "a"), held, ANN)
        stored = await world.get(V2, "a")
        assert [one["type"] for one in stored["status"]["conditions"]] == ["ScalingActive"]
        assert stored["metadata"]["annotations"] == {"mine": "yes"}

    tell(story)


def test_a_patch_in_v1_keeps_what_only_v2_can_say() -> None:
    case = RECORDED["v2"][0]

    async def story(world: World) -> None:
        await world.registry.create(Target(V2, "default"), case["v2"], ANN)
        await world.registry.patch(Target(V1, "default", "a"), "merge", {"spec": {"maxReplicas": 9}}, ANN)
        stored = await world.get(V2, "a")
        by_name = [json.dumps(one, sort_keys=True) for one in stored["spec"]["metrics"]]
        assert sorted(by_name) == sorted(json.dumps(one, sort_keys=True) for one in case["v2"]["spec"]["metrics"])
        assert stored["spec"] | {"maxReplicas": 5, "metrics": 0} == case["v2"]["spec"] | {"metrics": 0}

    tell(story)


WRONG_TYPE = '[{"type":"Pods","pods":{"metricName":5}}]'


@pytest.mark.parametrize("text", ["", "{", "1", '"x"', "[1]", WRONG_TYPE, "[" * 100_000])
def test_an_annotation_that_says_nothing_is_left_out(text: str) -> None:
    said = dict.fromkeys(ANNOTATIONS, text)
    made = to_v2({"metadata": {"name": "a", "annotations": said}, "spec": {"maxReplicas": 1}})
    assert "annotations" not in made["metadata"]
    assert "behavior" not in made["spec"]
