"""A definition is served, and its objects are pruned, defaulted, validated, patched and removed."""

import json
import time
from typing import Any

import pytest

from server.apiextensions.world import World, definition, of_spec, refusal, run, thing, warnings_of
from situate.server.apiextensions.served import DEFINITIONS
from situate.server.apiextensions.stored_form import CustomStoredForm
from situate.server.discovery import Discovery
from situate.server.kinds.apiextensions.definition_rules import PRESERVE_IN_SCHEMA
from situate.server.openapi import OpenApi
from situate.server.requests import SYSTEM, ListOptions, Target, WatchOptions
from situate.server.resources import RESOURCES
from situate.server.tables.printers import cells_of, columns_of

TEXT = {"type": "string"}
COUNT = {"type": "integer", "minimum": 1, "default": 3}


def test_a_definition_is_established_and_served_until_it_is_deleted() -> None:
    async def story(world: World) -> None:
        crd = definition(of_spec(a=TEXT))
        resource = await world.define(crd)
        stored = world.registry.cache.get(DEFINITIONS, "", "things.example.com")
        assert stored is not None
        status = stored.object(DEFINITIONS)["status"]
        assert [(one["type"], one["status"]) for one in status["conditions"]] == [
            ("NamesAccepted", "True"),
            ("Established", "True"),
        ]
        assert status["acceptedNames"] == {
            "plural": "things",
            "kind": "Thing",
            "singular": "thing",
            "listKind": "ThingList",
        }
        assert status["storedVersions"] == ["v1"]
        assert stored.object(DEFINITIONS)["metadata"]["finalizers"] == ["customresourcecleanup.apiextensions.k8s.io"]
        await world.create(resource, thing())
        await world.registry.delete(Target(DEFINITIONS, "", "things.example.com"), SYSTEM)
        assert world.registry.custom.at_path("example.com", "v1", "things") is not None
        assert "create" not in world.registry.custom.resources[0].verbs
        await world.controller._handle("things.example.com")
        assert world.registry.custom.at_path("example.com", "v1", "things") is None
        assert world.registry.cache.count(resource) == 0
        assert world.registry.cache.get(DEFINITIONS, "", "things.example.com") is None

    run(story)


def test_an_object_with_a_finalizer_keeps_its_definition() -> None:
    async def story(world: World) -> None:
        resource = await world.define(definition(of_spec(a=TEXT)))
        held = thing()
        held["metadata"]["finalizers"] = ["example.com/hold"]
        await world.create(resource, held)
        await world.registry.delete(Target(DEFINITIONS, "", "things.example.com"), SYSTEM)
        assert await world.controller._handle("things.example.com") is True
        stored = world.registry.cache.get(DEFINITIONS, "", "things.example.com")
        assert stored is not None
        await world.patch(resource, "a", {"metadata": {"finalizers": None}})
        await world.controller._handle("things.example.com")
        assert world.registry.cache.get(DEFINITIONS, "", "things.example.com") is None

    run(story)


def test_discovery_and_openapi_have_the_kind() -> None:
    async def story(world: World) -> None:
        crd = definition(of_spec(a=TEXT), subresources={"status": {}})
        crd["spec"]["names"] |= {"shortNames": ["th"], "categories": ["all"]}
        await world.define(crd)
        resources = (*RESOURCES, *world.registry.custom.resources)
        found = Discovery(resources).plain("/apis/example.com/v1", "")
        assert found is not None
        rows = json.loads(found.body)["resources"]
        assert [one["name"] for one in rows] == ["things", "things/status"]
        assert (rows[0]["shortNames"], rows[0]["categories"]) == (["th"], ["all"])
        document = OpenApi(resources).document("apis/example.com/v1")
        assert document is not None
        schemas = json.loads(document.body)["components"]["schemas"]
        assert schemas["com.example.v1.Thing"]["properties"]["spec"]["properties"] == {"a": TEXT}

    run(story)


def test_of_kinds_with_one_short_name_that_of_the_first_group_comes_first() -> None:
    """kubectl takes the first one that discovery lists."""

    async def story(world: World) -> None:
        for kind, group in (("Apple", "z.example.com"), ("Banana", "a.example.com")):
            crd = definition(of_spec(a=TEXT), kind=kind)
            crd["metadata"]["name"] = f"{kind.lower()}s.{group}"
            crd["spec"] |= {"group": group, "names": {**crd["spec"]["names"], "shortNames": ["fruit"]}}
            await world.define(crd)
        assert [one.kind for one in world.registry.custom.resources] == ["Banana", "Apple"]

    run(story)


def test_what_a_schema_does_not_specify_is_pruned_and_reported() -> None:
    async def story(world: World) -> None:
        free = {"type": "object", "x-kubernetes-preserve-unknown-fields": True, "properties": {"a": {"type": "object"}}}
        resource = await world.define(
            definition(of_spec(a=TEXT, free=free, map={"type": "object", "additionalProperties": TEXT}))
        )
        odd = thing(spec={"a": "x", "b": 1, "free": {"c": {"d": 1}, "a": {"e": 1}}, "map": {"k": "v"}}, extra=1)
        assert await warnings_of(world.create(resource, odd)) == [
            'unknown field "extra"',
            'unknown field "spec.b"',
            'unknown field "spec.free.a.e"',
        ]
        stored = (await world.registry.get(Target(resource, "default", "a"))).object(resource)
        assert stored["spec"] == {"a": "x", "free": {"c": {"d": 1}, "a": {}}, "map": {"k": "v"}}
        assert "extra" not in stored
        code, texts = await refusal(world.create(resource, odd, validation="Strict"))
        assert code == 400
        assert texts[0].startswith(
            'Thing in version "v1" cannot be handled as a Thing: strict decoding error: unknown field'
        )

    run(story)


def test_defaults_are_set_on_create_and_on_read() -> None:
    async def story(world: World) -> None:
        crd = definition(of_spec(a=TEXT))
        resource = await world.define(crd)
        await world.create(resource, thing(spec={"a": "x"}))
        stored = world.registry.cache.get(DEFINITIONS, "", "things.example.com")
        assert stored is not None
        newer = stored.object(DEFINITIONS)
        newer["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = of_spec(count=COUNT)
        await world.registry.update(Target(DEFINITIONS, "", "things.example.com"), newer, SYSTEM)
        resource = await world.established(crd)
        found = await world.registry.get(Target(resource, "default", "a"))
        assert found.object(resource)["spec"] == {"count": 3}
        assert json.loads(found.to_json(resource))["spec"] == {"count": 3}
        await world.create(resource, thing("b", spec={}))
        found = await world.registry.get(Target(resource, "default", "b"))
        assert json.loads(found.to_json(resource))["spec"] == {"count": 3}
        assert b"~" not in found.to_json(resource)

    run(story)


def test_values_are_validated_in_kube_apiservers_words() -> None:
    async def story(world: World) -> None:
        resource = await world.define(definition(of_spec(a={**TEXT, "maxLength": 3}, count=COUNT)))
        assert await refusal(world.create(resource, thing(spec={"a": 1, "count": 0}))) == (
            422,
            [
                'spec.a: Invalid value: "integer": spec.a in body must be of type string: "integer"',
                "spec.count: Invalid value: 0: spec.count in body should be greater than or equal to 1",
            ],
        )
        assert await refusal(world.create(resource, thing(spec={"a": "long"}))) == (
            422,
            ["spec.a: Too long: may not be more than 3 bytes"],
        )
        assert await refusal(world.create(resource, {**thing(), "kind": "Other"})) == (
            422,
            ['kind: Invalid value: "Other": must be Thing'],
        )

    run(story)


def test_an_update_may_keep_what_was_wrong_before() -> None:
    async def story(world: World) -> None:
        crd = definition(of_spec(a=TEXT, b=TEXT))
        resource = await world.define(crd)
        await world.create(resource, thing(spec={"a": "long", "b": "x"}))
        stored = world.registry.cache.get(DEFINITIONS, "", "things.example.com")
        assert stored is not None
        newer = stored.object(DEFINITIONS)
        short = {**TEXT, "maxLength": 3}
        newer["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = of_spec(a=short, b=short)
        await world.registry.update(Target(DEFINITIONS, "", "things.example.com"), newer, SYSTEM)
        resource = await world.established(crd)
        assert (await world.patch(resource, "a", {"spec": {"b": "y"}}))["spec"] == {"a": "long", "b": "y"}
        code, texts = await refusal(world.patch(resource, "a", {"spec": {"a": "longer"}}))
        assert (code, texts) == (422, ["spec.a: Too long: may not be more than 3 bytes"])

    run(story)


def test_the_status_is_a_subresource_and_the_generation_counts() -> None:
    async def story(world: World) -> None:
        schema = {
            **of_spec(a=TEXT),
            "properties": {**of_spec(a=TEXT)["properties"], "status": {"type": "object", "properties": {"n": COUNT}}},
        }
        resource = await world.define(definition(schema, subresources={"status": {}}))
        await world.create(resource, thing(spec={"a": "x"}, status={"n": 7}))
        found = await world.patch(resource, "a", {"status": {"n": 5}, "spec": {"a": "y"}}, sub="status")
        assert (found["spec"], found["status"], found["metadata"]["generation"]) == ({"a": "x"}, {"n": 5}, 1)
        found = await world.patch(resource, "a", {"status": {"n": 6}, "spec": {"a": "y"}})
        assert (found["spec"], found["status"], found["metadata"]["generation"]) == ({"a": "y"}, {"n": 5}, 2)
        _, texts = await refusal(world.patch(resource, "a", {"status": {"n": 0}}, sub="status"))
        assert texts == ["status.n: Invalid value: 0: n in body should be greater than or equal to 1"]

    run(story)


def test_apply_merges_lists_by_the_keys_of_the_schema() -> None:
    async def story(world: World) -> None:
        port = {"type": "object", "required": ["name"], "properties": {"name": TEXT, "port": {"type": "integer"}}}
        ports = {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
            "items": port,
        }
        names = {"type": "array", "x-kubernetes-list-type": "set", "items": TEXT}
        resource = await world.define(definition(of_spec(ports=ports, names=names)))
        await world.create(resource, thing(spec={"ports": [{"name": "a", "port": 1}], "names": ["x"]}))
        more = thing(spec={"ports": [{"name": "b", "port": 2}], "names": ["y"]})
        found = await world.patch(resource, "a", more, "apply")
        assert found["spec"] == {"ports": [{"name": "a", "port": 1}, {"name": "b", "port": 2}], "names": ["x", "y"]}
        _, texts = await refusal(world.patch(resource, "a", {"spec": {"names": ["x", "x"]}}))
        assert texts == ['spec.names[1]: Duplicate value: "x"']

    run(story)


def test_several_versions_show_one_object() -> None:
    async def story(world: World) -> None:
        crd = definition(of_spec(a=TEXT))
        old = {"name": "v1beta1", "served": True, "storage": False, "schema": {"openAPIV3Schema": of_spec(b=COUNT)}}
        crd["spec"]["versions"].append(old)
        resource = await world.define(crd)
        older = world.registry.custom.at_path("example.com", "v1beta1", "things")
        assert older is not None
        await world.create(resource, thing(spec={"a": "x"}))
        found = await world.registry.get(Target(older, "default", "a"))
        assert found.object(older)["apiVersion"] == "example.com/v1beta1"
        assert json.loads(found.to_json(older))["spec"] == {"b": 3}
        assert json.loads(found.to_json(resource))["spec"] == {"a": "x"}

    run(story)


def test_columns_come_from_json_paths() -> None:
    async def story(world: World) -> None:
        columns = [
            {"name": "A", "type": "string", "jsonPath": ".spec.a"},
            {"name": "Ready", "type": "string", "jsonPath": '.spec.list[?(@.type=="Ready")].status'},
            {"name": "Count", "type": "integer", "jsonPath": ".spec.count", "priority": 1},
        ]
        item = {"type": "object", "properties": {"type": TEXT, "status": TEXT}}
        schema = of_spec(a=TEXT, count=COUNT, list={"type": "array", "items": item})
        resource = await world.define(definition(schema, additionalPrinterColumns=columns))
        spec = {"a": "x", "list": [{"type": "Other", "status": "1"}, {"type": "Ready", "status": "True"}]}
        stored = await world.create(resource, thing(spec=spec))
        assert [one["name"] for one in columns_of(resource)] == ["Name", "A", "Ready", "Count"]
        assert cells_of(resource, stored.object(resource), 0) == ["a", "x", "True", 3]

    run(story)


def test_lists_and_watches_select_by_fields_of_the_definition() -> None:
    async def story(world: World) -> None:
        resource = await world.define(definition(of_spec(a=TEXT), selectableFields=[{"jsonPath": ".spec.a"}]))
        for name in ("x", "y"):
            await world.create(resource, thing(name, spec={"a": name}))
        found = await world.registry.list(Target(resource, "default"), ListOptions(fields="spec.a=y"))
        assert [one.name for one in found.items] == ["y"]
        watch = await world.registry.watch(Target(resource), WatchOptions(fields="spec.a!=y", resource_version="0"))
        assert [event.stored.name for event in watch.ready() if event.stored] == ["x"]
        await watch.aclose()
        code, texts = await refusal(world.registry.list(Target(resource), ListOptions(fields="spec.b=y")))
        assert (code, texts) == (400, ["field label not supported: spec.b"])

    run(story)


def test_a_definition_that_cannot_be_understood_leaves_the_others_alone() -> None:
    async def story(world: World) -> None:
        await world.define(definition(of_spec(a=TEXT)))
        other = definition(of_spec(a=TEXT), kind="Other")
        await world.define(other)

        def broken(obj: Any, _stored: Any) -> Any:
            obj["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"] = {
                "type": "string",
                "pattern": "(",
            }
            return obj

        await world.registry.modify(Target(DEFINITIONS, "", "others.example.com"), broken, SYSTEM)
        assert [one.kind for one in world.registry.custom.resources] == ["Thing"]

    run(story)


def test_names_that_are_taken_are_not_accepted() -> None:
    async def story(world: World) -> None:
        await world.define(definition(of_spec(a=TEXT)))
        other = definition(of_spec(a=TEXT), kind="Other")
        other["spec"]["names"] |= {"kind": "Thing", "shortNames": ["things"], "listKind": "OtherList"}
        await world.create(DEFINITIONS, other, namespace="")
        await world.controller._handle("others.example.com")
        stored = world.registry.cache.get(DEFINITIONS, "", "others.example.com")
        assert stored is not None
        status = stored.object(DEFINITIONS)["status"]
        conditions = {one["type"]: one for one in status["conditions"]}
        assert conditions["NamesAccepted"]["reason"] == "KindConflict"
        assert conditions["NamesAccepted"]["message"] == '"Thing" is already in use'
        assert conditions["Established"]["status"] == "False"
        assert world.registry.custom.of_kind("example.com/v1", "OtherList") is None
        assert len(world.registry.custom.resources) == 1

    run(story)


@pytest.mark.parametrize(
    "change,expected",
    [
        pytest.param(
            {"group": "x"},
            'spec.group: Invalid value: "x": should be a domain with at least one dot',
            id="a group needs a dot",
        ),
        pytest.param(
            {"scope": "No"},
            'spec.scope: Unsupported value: "No": supported values: "Cluster", "Namespaced"',
            id="a scope is one of two",
        ),
        pytest.param(
            {"preserveUnknownFields": True},
            f"spec.preserveUnknownFields: Invalid value: true: {PRESERVE_IN_SCHEMA}",
            id="unknown fields are preserved by schemas only",
        ),
    ],
)
def test_a_definition_is_validated(change: dict[str, Any], expected: str) -> None:
    async def story(world: World) -> None:
        crd = definition(of_spec(a=TEXT))
        crd["spec"] |= change
        code, texts = await refusal(world.create(DEFINITIONS, crd, namespace=""))
        assert code == 422
        assert expected in texts

    run(story)


def test_a_list_with_keys_may_not_have_items_that_are_no_objects() -> None:
    async def story(world: World) -> None:
        item = {"type": "object", "required": ["name"], "properties": {"name": TEXT}}
        keyed = {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
            "items": item,
        }
        resource = await world.define(definition(of_spec(ports=keyed)))
        code, texts = await refusal(world.create(resource, thing(spec={"ports": ["a", {"name": "b"}]})))
        assert code == 422
        assert 'spec.ports[0]: Invalid value: "string": spec.ports[0] in body must be of type object: "string"' in texts

    run(story)


def test_a_long_text_is_compared_with_its_format_in_linear_time() -> None:
    """Each of these texts kept the server busy for hours, or was answered with 500."""

    async def story(world: World) -> None:
        formats = {"duration": "duration", "email": "email"}
        resource = await world.define(
            definition(of_spec(**{name: {"type": "string", "format": one} for name, one in formats.items()}))
        )
        for name, text in (("duration", "1" * 300_000), ("email", "1:" * 200_000), ("email", "(" * 2_000)):
            start = time.process_time()
            code, _ = await refusal(world.create(resource, thing(spec={name: text})))
            assert (code, time.process_time() - start < 1) == (422, True)
        await world.create(resource, thing(spec={"duration": "3 \t days", "email": "A <a@b.c>"}))

    run(story)


def test_many_values_are_compared_with_many_of_an_enum_at_once() -> None:
    async def story(world: World) -> None:
        values = [*(f"v{number}" for number in range(3_000)), *range(3_000), 0.5, True]
        resource = await world.define(
            definition(of_spec(a={"type": "array", "items": {"enum": values, "x-kubernetes-int-or-string": True}}))
        )
        start = time.process_time()
        await world.create(resource, thing(spec={"a": ["v2999", 2_999] * 8_000}))
        code, texts = await refusal(world.create(resource, thing("b", spec={"a": [f"x{n}" for n in range(16_000)]})))
        assert (code, len(texts) > 1) == (422, True)
        assert time.process_time() - start < 2

    run(story)


def test_texts_too_long_for_their_patterns_are_refused_before_they_are_compared() -> None:
    async def story(world: World) -> None:
        name = {"type": "string", "pattern": "^([a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?[.]?)*$"}
        resource = await world.define(definition(of_spec(a={"type": "array", "items": name}, b=TEXT)))
        for texts in (["a." * 500_000 + "!"], ["a." * 500] * 1_000):
            start = time.process_time()
            code, messages = await refusal(world.create(resource, thing(spec={"a": texts})))
            assert code == 413
            assert messages == ["the object has too much text for the patterns of its schema: limit is 10000000"]
            assert time.process_time() - start < 3
        await world.create(resource, thing(spec={"a": ["a.b.example.com"] * 100, "b": "x" * 1_000_000}))

    run(story)


def test_many_watches_that_select_by_a_field_decode_an_object_once(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(world: World) -> None:
        resource = await world.define(definition(of_spec(a=TEXT), selectableFields=[{"jsonPath": ".spec.a"}]))
        options = [WatchOptions(fields=f"spec.a={value}") for value in ("x", "y")]
        watches = [await world.registry.watch(Target(resource, "default"), options[number % 2]) for number in range(50)]
        decoded = 0
        decode = CustomStoredForm.decode

        def counted(self: CustomStoredForm, value: bytes, revision: int) -> Any:
            nonlocal decoded
            decoded += 1
            return decode(self, value, revision)

        monkeypatch.setattr(CustomStoredForm, "decode", counted)
        await world.create(resource, thing(spec={"a": "x"}))
        await world.patch(resource, "a", {"spec": {"a": "y"}})
        assert decoded < 10
        types = [[event.type for event in watch.ready()] for watch in watches]
        assert types == [["ADDED", "DELETED"], ["ADDED"]] * 25
        for watch in watches:
            await watch.aclose()

    run(story)
