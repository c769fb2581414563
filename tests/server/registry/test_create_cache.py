"""Objects that differ in their names only: created from one template, they are what they would have been without it."""

import copy
from typing import Any

import msgspec
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from msgspec.structs import astuple

from server.registry.stories import ANN, CONFIG_MAP, POD, World, no, pod, tell
from situate.server.admission.chain import chain
from situate.server.registry.create_cache import MAX_BODY_BYTES, MAX_TEMPLATES, SplitBody, split_body
from situate.server.registry.normalize import normalize
from situate.server.registry.registry import collecting, warn
from situate.server.registry.stored_object import read_stored
from situate.server.requests import Caller, Object, Target, WriteOptions

_encode = msgspec.json.Encoder().encode
PODS_OF = Target(POD, "default")
NAMESPACE: Object = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}}


def like(body: bytes, target: Target = PODS_OF, caller: Caller = ANN, **options: Any) -> SplitBody | None:
    return split_body(target, body, caller, WriteOptions(**options))


def shape(body: bytes, target: Target = PODS_OF, caller: Caller = ANN, **options: Any) -> object:
    found = like(body, target, caller, **options)
    return None if found is None else found.shape


# -- what is alike -----------------------------------------------------------------------------------------------------


def test_bodies_are_alike_if_nothing_but_the_name_differs() -> None:
    one, other = _encode(pod("a")), _encode(pod("b"))
    assert like(one) is not None
    assert shape(one) == shape(other)
    assert shape(one) != shape(_encode(pod("b", labels={"x": "y"})))
    assert shape(_encode(pod("a", labels={"x": "a"}))) == shape(_encode(pod("b", labels={"x": "y"})))
    assert shape(_encode(pod("a", labels={"x": "y"}))) != shape(_encode(pod("a", labels={"z": "y"})))
    assert shape(one) != shape(one, Target(POD, "other"))
    assert shape(one) != shape(one, caller=Caller("ann", agent="curl"))
    assert shape(one) != shape(one, field_manager="m")
    assert shape(one) != shape(one, field_validation="Strict")


@pytest.mark.parametrize(
    "body",
    [
        b'{"metadata":{"name":"a","annotations":{"x":"a"}}}',  # which of the two is the name is not looked for
        b'{"metadata":{"name":"\\u0061"}}',
        b'{"metadata":{"name":7}}',
        b'{"metadata":{"name":"a"}',
        b"[1]",
        b"\xff",
        b'{"metadata":{"name":"a","annotations":{"x":"' + b"y" * MAX_BODY_BYTES + b'"}}}',
    ],
)
def test_what_is_not_easily_taken_apart_is_like_nothing(body: bytes) -> None:
    assert like(body) is None


_TEXTS = st.text('ab"\\/:{},é\n', max_size=4)


def _spelled(draw: st.DrawFn, text: str) -> str:
    if draw(st.integers(0, 5)) == 0:
        return '"' + "".join(f"\\u{ord(letter):04x}" for letter in text) + '"'
    return _encode(text).decode()


def _object(draw: st.DrawFn, *names: str) -> str:
    """With fields in any order, said twice, and spelled in several ways."""
    others = [(name, draw(_TEXTS)) for name in draw(st.lists(st.sampled_from(["name", "labels", "a"]), max_size=3))]
    fields = draw(st.permutations([*others, *(("name", name) for name in names)]))
    return "{" + ",".join(f"{_spelled(draw, name)}:{_spelled(draw, value)}" for name, value in fields) + "}"


@st.composite
def _bodies(draw: st.DrawFn) -> bytes:
    others = [(name, _object(draw)) for name in draw(st.lists(st.sampled_from(["metadata", "spec"]), max_size=2))]
    fields = draw(st.permutations([*others, ("metadata", _object(draw, "own"))]))
    return ("{" + ",".join(f"{_spelled(draw, name)}:{value}" for name, value in fields) + "}").encode()


@given(_bodies(), st.text("ab-", min_size=1, max_size=3))
def test_of_two_bodies_of_one_shape_the_objects_differ_in_their_names_only(body: bytes, name: str) -> None:
    first = like(body)
    assume(first is not None and first.name != "")
    assert first is not None
    before, after = first.shape[-2:]
    other = before + _encode(name) + after
    second = like(other)
    assume(second is not None and second.shape == first.shape)
    assert second is not None
    one, two = msgspec.json.decode(body), msgspec.json.decode(other)
    assert (one["metadata"].pop("name"), two["metadata"].pop("name")) == (first.name, second.name)
    assert one == two


# -- what is cast ------------------------------------------------------------------------------------------------------


def _with(**spec: Any) -> Object:
    made = pod("first", labels={"app": "web", "tier": "x"}, annotations={"a": "b"})
    made["spec"] |= spec
    return made


SPREAD = {"topologyKey": "zone", "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule", "matchLabelKeys": ["tier"]}
KINDS_OF_PODS = {
    "plain": _with(),
    "rich": _with(
        tolerations=[{"key": "k", "operator": "Exists"}],
        containers=[
            {
                "name": "c",
                "image": "i:1",
                "resources": {"limits": {"cpu": "1500m", "memory": "1Gi"}},
                "ports": [{"containerPort": 80}],
                "lifecycle": {"stopSignal": "SIGTERM", "preStop": {"sleep": {"seconds": 1}}},
            }
        ],
    ),
    "spread": _with(topologySpreadConstraints=[{**SPREAD, "labelSelector": {"matchLabels": {"app": "web"}}}]),
    "gated": _with(schedulingGates=[{"name": "g"}]),
    "bound": _with(nodeName="n"),
    "volumes": _with(volumes=[{"name": "v", "emptyDir": {}}]),
    "ephemeral": _with(
        volumes=[
            {
                "name": "v",
                "ephemeral": {
                    "volumeClaimTemplate": {
                        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
                    }
                },
            }
        ]
    ),
    "generated": {**_with(), "metadata": {"generateName": "first-", "labels": {"app": "web"}}},
}


def _named(given: Object, name: str) -> Object:
    """With a label of its own."""
    made = copy.deepcopy(given)
    made["metadata"]["labels"]["app"] = f"of-{name}"
    if "name" in made["metadata"]:
        made["metadata"]["name"] = name
    return made


@pytest.mark.parametrize("kind", KINDS_OF_PODS)
def test_what_is_cast_is_what_would_have_been_made(kind: str) -> None:
    given = KINDS_OF_PODS[kind]
    values: dict[bool, list[bytes]] = {True: [], False: []}

    def story(first: bool) -> Any:
        async def told(world: World) -> None:
            await world.create(NAMESPACE)
            # A first one, or one that is like nothing: it has the same uid and the same time as a first one.
            await world.create(_named(given, "first") if first else pod("other", labels={"no": "template"}))
            world.later(5)
            for name in ("second", "third"):
                made = await world.create(_named(given, name))
                held = world.cache.get(POD, "default", made["metadata"]["name"])
                assert held is not None
                assert astuple(held) == astuple(read_stored(held.key, held.value, held.revision)), (
                    "seen as it would be read"
                )
                values[first].append(held.value)
                world.later(5)

        return told

    for first in (True, False):
        tell(story(first), admission=chain, suffixes=("aaaaa", "bbbbb", "ccccc")[0 if first else 1 :])
    assert values[True] == values[False]


@pytest.mark.parametrize("value", ["-", "x" * 64, "é"])
def test_labels_are_still_looked_at(value: str) -> None:
    async def story(world: World) -> None:
        await world.create(pod("a", labels={"app": "fine"}))
        code, _, message = await no(world.create(pod("b", labels={"app": value})))
        assert code == 422
        assert message.startswith(f'Pod "b" is invalid: metadata.labels: Invalid value: "{value}"')

    tell(story)


@pytest.mark.parametrize("accounts", [False, True], ids=["no volume", "the volume of an account's token"])
def test_only_the_first_of_its_shape_is_decoded(accounts: bool) -> None:
    decoded: list[bytes] = []

    async def story(world: World) -> None:
        await world.create(NAMESPACE)
        await world.create(
            {
                "apiVersion": "v1",
                "kind": "ServiceAccount",
                "metadata": {"name": "default", "namespace": "default"},
            }
        )
        for name in ("x", "y", "z"):
            body = _encode(pod(name, labels={"own": name}))

            def decode(body: bytes = body) -> Object:
                decoded.append(body)
                return normalize(POD, body)

            await world.registry.create_body(PODS_OF, body, decode, ANN, WriteOptions())
        assert await world.names(POD) == ["x", "y", "z"]

    tell(story, admission=lambda cache: chain(cache, accounts=accounts))
    assert decoded == [_encode(pod("x", labels={"own": "x"}))]


def test_a_name_is_still_looked_at() -> None:
    async def story(world: World) -> None:
        await world.create(pod("a"))
        assert await no(world.create(pod("a"))) == (409, "AlreadyExists", 'pods "a" already exists')
        code, _, message = await no(world.create(pod("A_b")))
        assert code == 422
        assert message.startswith('Pod "A_b" is invalid: metadata.name: Invalid value: "A_b"')
        for _ in range(2):
            with collecting() as warnings:
                await world.create(pod("a.b"), dry_run=True)
            assert [text[:14] for text in warnings] == ["metadata.name:"]

    tell(story)


def test_what_was_warned_of_is_warned_of_again() -> None:
    async def story(world: World) -> None:
        for name in ("a", "b"):
            made = pod(name)
            made["spec"]["containers"][0]["resources"] = {"requests": {"memory": "100m"}}
            with collecting() as warnings:
                await world.create(made)
            assert len(warnings) == 1
            with collecting() as warnings:
                await world.registry.create_body(
                    PODS_OF, b'{"metadata":{"name":"x%b"}}' % name.encode(), _warns(f"x{name}"), ANN, WriteOptions()
                )
            assert warnings == ['unknown field "spec.typo"']

    tell(story)


def _warns(name: str) -> Any:
    def decode() -> Object:
        warn(['unknown field "spec.typo"'])
        return normalize(POD, _encode(pod(name)))

    return decode


def test_admission_that_goes_by_something_else_is_asked_again() -> None:
    def priority_class(name: str, value: int) -> Object:
        head = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}}
        return {**head, "value": value, "globalDefault": True}

    async def story(world: World) -> None:
        await world.create(NAMESPACE)
        found = [(await world.create(pod(name)))["spec"]["priority"] for name in ("a", "b")]
        await world.create(priority_class("usual", 7))
        found += [(await world.create(pod(name)))["spec"]["priority"] for name in ("c", "d")]
        assert found == [0, 0, 7, 7]

    tell(story, admission=chain)


def test_who_only_refuses_is_asked_each_time() -> None:
    asked: list[str] = []

    class Refusing:
        async def admit(self, action: str, target: Target, new: Object | None, old: object, caller: object) -> None:
            if new is not None and target.resource is POD:
                asked.append(new["metadata"]["name"])
                assert new["spec"]["tolerations"]

        def version(self, target: Target) -> int | None:
            return None

    async def story(world: World) -> None:
        await world.create(NAMESPACE)
        for name in ("a", "b", "c"):
            await world.create(pod(name))

    tell(story, admission=lambda cache: [*chain(cache), Refusing()])
    assert asked == ["a", "b", "c"]


def test_what_a_client_says_of_managed_fields_is_no_mould() -> None:
    entry: Object = {"manager": "m", "operation": "Update", "apiVersion": "v1", "time": "2020-01-01T00:00:00Z"}
    entry |= {"fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {"f:hostname": {}}}}

    async def story(world: World) -> None:
        times = []
        for name in ("a", "b"):
            made = await world.create(pod(name, managedFields=[entry]))
            times.append([one.get("time") for one in made["metadata"]["managedFields"]])
        assert times[0] == times[1]
        assert "2020-01-01T00:00:00Z" in times[0]

    tell(story)


def test_no_more_moulds_are_kept_than_the_limit() -> None:
    async def story(world: World) -> None:
        for number in range(MAX_TEMPLATES + 10):
            await world.create(pod("a", annotations={"n": str(number)}), dry_run=True)
        kept = world.registry._context.templates._templates
        assert len(kept) == MAX_TEMPLATES
        newest = like(_encode(pod("b", annotations={"n": str(MAX_TEMPLATES + 9)})))
        assert newest is not None
        assert newest.shape in kept

    tell(story)


def test_other_kinds_have_none() -> None:
    async def story(world: World) -> None:
        for name in ("a", "b"):
            await world.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}})
        assert await world.names(CONFIG_MAP) == ["a", "b"]
        assert not world.registry._context.templates._templates

    tell(story)
