"""A history as bytes: every kind of change and effect goes there and back; what was damaged is told in one line."""

import dataclasses
import types
import typing
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints
from zlib import crc32

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders import node, pod
from situate.core.changes import BindDone, BindFailed, Change, NodeSeen, ObjectSeen, PodRef, PodSeen
from situate.core.config.defaults import default_configuration
from situate.core.config.types import Extender, ExtenderTLSConfig, KubeSchedulerProfile, PluginConfig
from situate.core.effects import Bind, Effect, Nominate, Report
from situate.core.model.base import INT64_MAX, INT64_MIN
from situate.core.model.pod import Pod
from situate.core.versions import V1_37
from situate.wire import journal
from situate.wire.errors import InputError
from situate.wire.journal import (
    DAMAGED,
    VERSION,
    JournalHeader,
    JournalRecord,
    StepChanges,
    StepEffects,
    decode_record,
    digest_of,
    encode_record,
    fingerprint,
    plain,
)

REF = PodRef("default", "web", "u1")
CONFIG = default_configuration()

# ── anything that the types allow ───────────────────────────────────────────────────────────────────────────────────

texts = st.text(max_size=8)
leaves: dict[Any, st.SearchStrategy[Any]] = {
    str: texts,
    int: st.integers(INT64_MIN, INT64_MAX),
    float: st.floats(allow_nan=False, allow_infinity=False),
    bool: st.booleans(),
    bytes: st.binary(max_size=8),
    type(None): st.none(),
    Any: st.none() | texts,
}


def values_of(kind: Any) -> st.SearchStrategy[Any]:
    """Values of an annotated type, down to its leaves."""
    if kind in leaves:
        return leaves[kind]
    origin, args = get_origin(kind), get_args(kind)
    if origin is Annotated:
        bounds = next(one for one in args[1:] if isinstance(one, msgspec.Meta))
        low, high = typing.cast("tuple[int, int]", (bounds.ge, bounds.le))
        return st.integers(low, high) if args[0] is int else values_of(args[0])
    if origin in (Union, types.UnionType):
        return st.one_of(*map(values_of, args))
    if origin is Literal:
        return st.sampled_from(args)
    if origin is tuple and args[-1] is Ellipsis:
        return st.lists(values_of(args[0]), max_size=2).map(tuple)
    if origin is tuple:
        return st.tuples(*map(values_of, args))
    if origin in (dict, Mapping, typing.Mapping):
        return st.dictionaries(values_of(args[0]), values_of(args[1]), max_size=2)
    return objects_of(kind)


def objects_of(kind: type) -> st.SearchStrategy[Any]:
    """Structs and dataclasses with some of their fields given, and the others left at their defaults."""
    if kind not in made:
        hints = get_type_hints(kind, include_extras=True)
        needed = (
            [field.name for field in dataclasses.fields(kind) if field.default is dataclasses.MISSING]
            if dataclasses.is_dataclass(kind)
            else [field.name for field in msgspec.structs.fields(kind) if field.required]
        )
        names = typing.cast("tuple[str, ...]", getattr(kind, "__struct_fields__", tuple(hints)))
        given_ones = st.fixed_dictionaries(
            {name: st.deferred(lambda name=name: values_of(hints[name])) for name in needed},  # type: ignore[misc]
            optional={
                name: st.deferred(lambda name=name: values_of(hints[name]))  # type: ignore[misc]
                for name in names
                if name not in needed
            },
        )
        made[kind] = given_ones.map(lambda fields: kind(**fields))
    return made[kind]


made: dict[type, st.SearchStrategy[Any]] = {}
CHANGES = {kind.__name__: kind for kind in get_args(Change)}
EFFECTS = {kind.__name__: kind for kind in get_args(Effect)}
ITEMS = {kind.__name__: kind for kind in get_args(get_type_hints(ObjectSeen)["item"])}


@pytest.mark.parametrize("kind", CHANGES.values(), ids=CHANGES)
@given(data=st.data())
@settings(max_examples=20, deadline=None)
def test_a_change_of_every_kind_goes_there_and_back(kind: type, data: st.DataObject) -> None:
    record = StepChanges(1, 5, (data.draw(objects_of(kind)),))
    assert decode_record(encode_record(record)) == record


@pytest.mark.parametrize("kind", ITEMS.values(), ids=ITEMS)
@given(data=st.data())
@settings(max_examples=20, deadline=None)
def test_an_object_of_every_kind_goes_there_and_back(kind: type, data: st.DataObject) -> None:
    record = StepChanges(1, 5, (ObjectSeen(data.draw(objects_of(kind))),))
    assert decode_record(encode_record(record)) == record


@pytest.mark.parametrize("kind", EFFECTS.values(), ids=EFFECTS)
@given(data=st.data())
@settings(max_examples=20, deadline=None)
def test_an_effect_of_every_kind_goes_there_and_back(kind: type, data: st.DataObject) -> None:
    record = StepEffects(1, (data.draw(objects_of(kind)),))
    assert decode_record(encode_record(record)) == record


def test_quantities_stay_as_they_were_written() -> None:
    record = StepChanges(
        1, 0, (PodSeen(pod(requests={"cpu": 2.0, "memory": "1Gi", "example.com/x": 10**30, "y": 0.1})),)
    )
    (back,) = typing.cast(StepChanges, decode_record(encode_record(record))).changes
    requests = typing.cast(PodSeen, back).pod.spec.containers[0].resources.requests
    assert [type(held) for held in requests.values()] == [float, str, int, float]
    assert back == record.changes[0]


def test_a_record_is_one_line_that_says_what_it_is() -> None:
    line = encode_record(StepChanges(7, 1_000, (BindDone(REF, 3),)))
    assert line.partition(b" ")[2] == (
        b'{"record":"step","step":7,"now":1000,"changes":'
        b'[["BindDone",{"pod":{"namespace":"default","name":"web","uid":"u1"},"attempt":3}]]}\n'
    )


def test_what_is_at_its_default_takes_no_room() -> None:
    assert len(encode_record(StepChanges(1, 0, (PodSeen(Pod()),)))) < 80


def test_a_digest_is_of_the_effects_and_their_order() -> None:
    one, two = Bind(REF, "n1", 1), Bind(REF, "n2", 1)
    assert digest_of([one, two]) == digest_of([one, two])
    assert len({digest_of(effects) for effects in ([], [one], [two], [one, two], [two, one])}) == 5


def test_effects_may_be_kept_as_a_digest() -> None:
    record = StepEffects(4, None, digest_of([Bind(REF, "n1", 1)]))
    assert decode_record(encode_record(record)) == record


def test_an_effect_as_plain_values_names_its_kind() -> None:
    ref = {"namespace": "default", "name": "web", "uid": "u1"}
    assert plain(Nominate(REF, "n1")) == {"is": "Nominate", "pod": ref, "node": "n1"}
    assert plain(ObjectSeen(ITEMS["Namespace"]()))["kind"] == "Namespace"


# ── the header ──────────────────────────────────────────────────────────────────────────────────────────────────────


def read_header(header: JournalHeader) -> JournalHeader:
    back = decode_record(encode_record(header))
    assert isinstance(back, JournalHeader)
    return back


def test_a_header_has_the_configuration_and_the_fingerprint() -> None:
    profiles = (
        KubeSchedulerProfile(
            scheduler_name="a", plugin_config=(PluginConfig(name="a.b:C", args={"x": [1, 2.5, None]}),)
        ),
    )
    config = msgspec.structs.replace(CONFIG, pod_max_backoff_seconds=7, profiles=CONFIG.profiles + profiles)
    back = read_header(JournalHeader(config=config, batch=8, unschedulable_limit_ms=7, segment=2, first_step=100))
    assert back == JournalHeader(
        config=config, batch=8, unschedulable_limit_ms=7, segment=2, first_step=100, format=fingerprint()
    )


def test_a_header_keeps_the_version_of_kubernetes_and_without_one_means_1_36() -> None:
    newer = JournalHeader(config=default_configuration(V1_37), batch=1)
    assert read_header(newer).config == newer.config
    assert b'"kubernetes":' not in encode_record(JournalHeader(config=CONFIG, batch=1))


def test_a_header_of_an_unknown_version_of_kubernetes_is_refused() -> None:
    line = encode_record(JournalHeader(config=default_configuration(V1_37), batch=1))
    payload = line[9:-1].replace(b'"1.37"', b'"1.99"')
    with pytest.raises(InputError, match=r"^j: record 1: kubernetes: is 1.99, and only 1.36, 1.37 are known$"):
        decode_record(line_of(payload), "j", 1)


def test_a_private_key_is_not_written() -> None:
    tls = ExtenderTLSConfig(key_data=b"secret", cert_data=b"public")
    config = msgspec.structs.replace(CONFIG, extenders=(Extender(url_prefix="https://x", tls_config=tls),))
    (extender,) = read_header(JournalHeader(config=config, batch=1)).config.extenders
    assert extender.tls_config == ExtenderTLSConfig(cert_data=b"public")


def test_a_header_of_another_version_is_refused_whatever_else_it_has() -> None:
    payload = msgspec.json.encode({"record": "journal", "version": VERSION + 1, "what": ["else"]})
    with pytest.raises(InputError, match=r"^j: record 1: is of version 2, and only version 1 can be read$"):
        decode_record(line_of(payload), "j", 1)


def test_the_fingerprint_is_of_fields_and_not_of_what_is_said_about_them() -> None:
    def schema(text: str, name: str) -> Any:
        return {"title": "T", "description": text, "properties": {name: {"type": "string"}}}

    strip = journal._without_words
    assert strip(schema("one", "a")) == strip(schema("two", "a"))
    assert strip(schema("one", "a")) != strip(schema("one", "b"))
    assert strip(schema("one", "title")) != strip(schema("one", "description"))


# ── what is wrong ───────────────────────────────────────────────────────────────────────────────────────────────────


def line_of(payload: bytes) -> bytes:
    return b"%08x %s\n" % (crc32(payload), payload)


GOOD: list[JournalRecord] = [
    JournalHeader(config=CONFIG, batch=4),
    StepChanges(1, 0, (NodeSeen(node(cpu="4")), PodSeen(pod(uid="u1")), BindFailed(REF, 1, "no", final=True))),
    StepEffects(1, (Bind(REF, "n1", 1), Report(REF, "Normal", "a", "b", "c", related=REF))),
]


@given(st.sampled_from(GOOD), st.data())
@settings(max_examples=300, deadline=None)
def test_a_flipped_bit_is_always_noticed(record: JournalRecord, data: st.DataObject) -> None:
    line = bytearray(encode_record(record))
    line[data.draw(st.integers(0, len(line) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    with pytest.raises(InputError, match=r"^journal: record 3: "):
        decode_record(bytes(line), "journal", 3)


@given(st.sampled_from(GOOD), st.data())
@settings(max_examples=100, deadline=None)
def test_a_record_that_was_cut_off_is_always_noticed(record: JournalRecord, data: st.DataObject) -> None:
    line = encode_record(record)
    with pytest.raises(InputError):
        decode_record(line[: data.draw(st.integers(0, len(line) - 1))])


@given(st.binary(max_size=60))
@settings(max_examples=200, deadline=None)
def test_arbitrary_bytes_are_refused_in_one_line(data: bytes) -> None:
    for line in (data, line_of(data)):
        with pytest.raises(InputError) as caught:
            decode_record(line, "journal", 1)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "payload, problem",
    [
        pytest.param(b'{"record":"step","step":1,"now":0,"changes":[["Nova",{}]]}', 'kind, "Nova"', id="a change"),
        pytest.param(b'{"record":"effects","step":1,"effects":[["PodSeen",{}]]}', 'kind, "PodSeen"', id="an effect"),
        pytest.param(
            b'{"record":"step","step":1,"now":0,"changes":[["ObjectSeen",{"kind":"Moon","item":{}}]]}',
            'kind, "Moon"',
            id="an object",
        ),
        pytest.param(b'{"record":"poem"}', "Invalid value", id="a record"),
        pytest.param(
            b'{"record":"step","step":1,"now":0,"changes":[["BindDone",{"pod":3,"attempt":1}]]}',
            "BindDone: pod: expected an object, got an integer",
            id="a field of another type",
        ),
        pytest.param(b'{"record":"step","step":1}', "missing required field `now`", id="a record with a field missing"),
        pytest.param(b"[" * 100_000, "not JSON|expected", id="nesting without end"),
        pytest.param(
            b'{"record":"journal","version":1,"situate":"","format":"","batch":0,"segment":1,"first_step":1,"config":{}}',
            "config: Object 'Kind' is missing",
            id="a configuration that is none",
        ),
    ],
)
def test_what_is_not_known_is_refused(payload: bytes, problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        decode_record(line_of(payload), "j", 2)


def test_damage_is_told_as_damage() -> None:
    line = encode_record(GOOD[1])
    with pytest.raises(InputError, match=f"^j: record 2: {DAMAGED}$"):
        decode_record(line.replace(b"web", b"wob"), "j", 2)
