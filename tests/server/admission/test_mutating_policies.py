"""Mutating admission policies, where no other server is needed to judge them: tests/kubernetes compares the rest."""

from typing import Any

import pytest

from server.admission.test_validating_policies import API, RULE, given
from server.registry.stories import World, config_map, no
from situate.server.requests import Object
from situate.wire.patching import json_patched


def policy(*expressions: str, name: str = "m", **spec: Any) -> Object:
    mutations = [
        {"patchType": "JSONPatch", "jsonPatch": {"expression": one}}
        if one.startswith("[")
        else {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": one}}
        for one in expressions
    ]
    rules = [{**RULE, "operations": ["CREATE", "UPDATE"]}]
    whole = {
        "matchConstraints": {"resourceRules": rules},
        "mutations": mutations,
        "reinvocationPolicy": "Never",
        **spec,
    }
    return {"apiVersion": API, "kind": "MutatingAdmissionPolicy", "metadata": {"name": name}, "spec": whole}


def binding(name: str = "m") -> Object:
    spec = {"policyName": name}
    return {"apiVersion": API, "kind": "MutatingAdmissionPolicyBinding", "metadata": {"name": name}, "spec": spec}


def test_each_mutation_sees_what_the_one_before_it_left() -> None:
    async def story(here: World) -> None:
        made = await here.create(config_map("c") | {"data": {"a": "1"}})
        assert made["data"] == {"a": "1", "b": "1!", "c": "1!?"}
        assert made["metadata"]["uid"]

    first = "Object{data: Object.data{b: object.data.a + '!'}}"
    second = "[JSONPatch{op: 'add', path: '/data/c', value: object.data.b + '?'}]"
    given(policy(first, second), binding())(story)


def test_a_policy_that_changed_the_object_is_asked_again_if_it_wants_to_be() -> None:
    async def story(here: World) -> None:
        made = await here.create(config_map("c") | {"data": {"count": "1"}})
        assert made["data"] == {"count": "3"}

    counting = "Object{data: Object.data{count: string(int(object.data.count) + 1)}}"
    given(policy(counting, reinvocationPolicy="IfNeeded"), binding())(story)


def test_a_patch_that_tests_for_what_is_not_so_changes_nothing_and_each_test_is_made_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made: list[int] = []

    def count(obj: Object, operations: Any) -> Object:
        made.append(len(operations))
        return json_patched(obj, operations)

    monkeypatch.setattr("situate.server.admission.policies.mutating.json_patched", count)

    async def story(here: World) -> None:
        stored = await here.create(config_map("c") | {"data": {str(number): "1" for number in range(500)}})
        assert set(stored["data"].values()) == {"1"}
        assert sum(made) == 502

    tests = "object.data.map(k, JSONPatch{op: 'test', path: '/data/' + k, value: '1'})"
    last = "JSONPatch{op: 'add', path: '/data/0', value: '2'}, JSONPatch{op: 'test', path: '/data/1', value: '2'}"
    given(policy(f"[] + {tests} + [{last}]"), binding())(story)


def test_a_mutation_cannot_take_an_object_somewhere_else() -> None:
    async def story(here: World) -> None:
        made = await here.create(config_map("c"))
        assert (made["metadata"]["name"], made["metadata"]["namespace"]) == ("c", "default")

    given(policy("[JSONPatch{op: 'replace', path: '/metadata/namespace', value: 'default'}]"), binding())(story)


def test_what_is_invalid_after_a_mutation_is_refused() -> None:
    async def story(here: World) -> None:
        code, reason, message = await no(here.create(config_map("c")))
        assert (code, reason) == (422, "Invalid")
        assert "metadata.labels" in message

    given(policy("Object{metadata: Object.metadata{labels: {'a b': ''}}}"), binding())(story)


def test_a_value_of_a_wrong_type_changes_nothing() -> None:
    async def story(here: World) -> None:
        code, _, message = await no(here.create(config_map("c")))
        assert (code, "failed to convert patch object" in message) == (403, True)

    given(policy("Object{data: Object.data{a: 1}}"), binding())(story)
