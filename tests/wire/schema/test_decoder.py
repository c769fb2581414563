"""Reading bodies, beside what kube-apiserver v1.36.4 answered and what its own libraries wrote."""

import json
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from situate.wire.schema import (
    DecodeError,
    checked,
    decode,
    duplicate_fields,
    kinds,
    message,
    normalised,
    strict_refusal,
)
from situate.wire.schema.slow_decoder import Walk, walked
from situate.wire.schema.structs import builtin, from_builtin
from wire.schema.strategies import kind_of

DATA = Path(__file__).parent / "data"


def recorded(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (DATA / name).read_text().splitlines()]


def answer(api_version: str, kind: str, body: bytes) -> str | None:
    """What a client that asks for strict validation is told, if its body is refused."""
    try:
        problems = decode(api_version, kind, body).problems
    except DecodeError as refused:
        return str(refused)
    return strict_refusal(api_version, kind, problems) if problems else None


def as_stored(value: Any) -> Any:
    """Without what Go writes for a list or a time that is not there."""
    if isinstance(value, dict):
        return {name: as_stored(inner) for name, inner in value.items() if inner is not None and inner != []}
    return [as_stored(inner) for inner in value] if isinstance(value, list) else value


# Bodies that were posted to a kube-apiserver, with fieldValidation=Strict; `answer` is its 400, if it was one.
@pytest.mark.parametrize(
    "case", [pytest.param(one, id=one["body"][-80:] or "empty") for one in recorded("answers.jsonl")]
)
def test_a_body_is_refused_in_the_words_of_kube_apiserver(case: dict[str, Any]) -> None:
    assert answer(case["apiVersion"], case["kind"], case["body"].encode()) == case["answer"]


# Random objects of all kinds, as k8s.io/apimachinery's strict reader took or refused them, and wrote them again.
@pytest.mark.parametrize(
    "case", [pytest.param(one, id=f"{one['kind']} {n}") for n, one in enumerate(recorded("written_by_go.jsonl"))]
)
def test_an_object_is_what_go_writes_after_reading_it(case: dict[str, Any]) -> None:
    if "refused" in case:
        with pytest.raises(DecodeError) as refused:
            decode(case["apiVersion"], case["kind"], case["body"].encode())
        assert refused.value.why == case["refused"]
        return
    found = decode(case["apiVersion"], case["kind"], case["body"].encode())
    assert as_stored(found.object) == as_stored(case["object"])
    assert ", ".join(found.problems) == case.get("strict", "").removeprefix("strict decoding error: ")


def test_every_kind_of_go_was_compared() -> None:
    ours = {"situate.dev/v1alpha1", "scheduling.x-k8s.io/v1alpha1", "meta.k8s.io/v1", "scheduling.k8s.io/v1beta1"}
    ours.add("metrics.k8s.io/v1beta1")  # another server's
    ours.add("apiextensions.k8s.io/v1")  # compared with kube-apiserver, in tests/server/apiextensions
    ours.add("admissionregistration.k8s.io/v1")  # and these in tests/kubernetes/test_policies.py and test_webhooks.py
    ours.add("flowcontrol.apiserver.k8s.io/v1")  # compared with kube-apiserver, in tests/server/kinds
    compared = {(one["apiVersion"], one["kind"]) for one in recorded("written_by_go.jsonl")}
    newer = {("resource.k8s.io/v1", "DeviceTaintRule")}  # than the release that was recorded
    # Compared with kube-apiserver, in tests/server/kinds and tests/server/registry:
    newer |= {(f"autoscaling/v{one}", "HorizontalPodAutoscaler") for one in (1, 2)}
    newer |= {("storage.k8s.io/v1", "VolumeAttributesClass"), ("apiregistration.k8s.io/v1", "APIService")}
    assert {pair for pair in kinds() if pair[0] not in ours} - compared - newer <= {
        ("v1", "Service"),
        ("v1", "Node"),
        ("certificates.k8s.io/v1", "CertificateSigningRequest"),
    }


@settings(max_examples=150, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_an_object_that_is_normal_comes_back_as_it_is(seed: int) -> None:
    made = kind_of(Random(seed), noisy=False)
    found = decode(made["apiVersion"], made["kind"], msgspec.json.encode(made))
    assert found.object == made
    assert found.problems == ()
    assert list(found.object) == list(made)
    assert normalised(made["apiVersion"], made["kind"], made) == made


@settings(max_examples=150, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_to_normalise_again_changes_nothing(seed: int) -> None:
    made = kind_of(Random(seed), noisy=True)
    once = normalised(made["apiVersion"], made["kind"], made)
    assert normalised(made["apiVersion"], made["kind"], once) == once
    assert decode(made["apiVersion"], made["kind"], msgspec.json.encode(made)).object == once


@settings(max_examples=150, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_the_fast_way_and_the_careful_way_agree(seed: int) -> None:
    made = kind_of(Random(seed), noisy=seed % 2 == 0)
    name = kinds()[made["apiVersion"], made["kind"]]
    careful = walked(message(name), made, Walk())
    try:
        fast = builtin(from_builtin(name, made))
    except (msgspec.ValidationError, ValueError):
        return
    assert fast == careful
    assert list(fast) == list(careful)


def test_a_small_pod_keeps_what_it_says_in_the_order_of_the_table() -> None:
    body = (
        b'{"spec":{"containers":[{"image":"i","name":"c","tty":false,"command":[]}]},'
        b'"metadata":{"name":"p"},"kind":"Pod","apiVersion":"v1"}'
    )
    found = decode("v1", "Pod", body).object
    assert json.dumps(found) == json.dumps(
        {
            "kind": "Pod",
            "apiVersion": "v1",
            "metadata": {"name": "p"},
            "spec": {"containers": [{"name": "c", "image": "i", "resources": {}}]},
            "status": {},
        }
    )


def test_kind_and_api_version_may_be_left_out() -> None:
    found = decode("apps/v1", "Deployment", b'{"metadata":{"name":"d"}}').object
    assert (found["apiVersion"], found["kind"]) == ("apps/v1", "Deployment")


def test_null_is_an_empty_object() -> None:
    assert decode("v1", "ConfigMap", b"null").object == {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {}}


@pytest.mark.parametrize("said", ["v1", "apps/v1", "policy/v1", "meta.k8s.io/v1"])
def test_delete_options_may_be_those_of_any_group(said: str) -> None:
    body = b'{"kind":"DeleteOptions","apiVersion":"%b","gracePeriodSeconds":0}' % said.encode()
    assert decode("v1", "DeleteOptions", body).object["gracePeriodSeconds"] == 0


def test_custom_resources_keep_zero_values() -> None:
    body = b'{"metadata":{"name":"g"},"spec":{"minMember":0,"scheduleTimeoutSeconds":0}}'
    assert decode("scheduling.x-k8s.io/v1alpha1", "PodGroup", body).object["spec"] == {
        "minMember": 0,
        "scheduleTimeoutSeconds": 0,
    }


def test_what_is_free_in_form_is_kept_as_it_is() -> None:
    owned = [{"manager": "m", "fieldsV1": {"f:data": {"a": None, "b": "", "c": 0}, "more": {}}}]
    body = json.dumps({"metadata": {"name": "n", "managedFields": owned}}).encode()
    assert decode("v1", "ConfigMap", body).object["metadata"]["managedFields"] == owned


def test_what_nobody_would_be_told_is_not_looked_for() -> None:
    body = b'{"kind":"ConfigMap","apiVersion":"v1","data":{"a":"1","a":"2"}}'
    assert decode("v1", "ConfigMap", body).problems == ('duplicate field "data.a"',)
    assert decode("v1", "ConfigMap", body, strict=False).problems == ()
    assert decode("v1", "ConfigMap", body, strict=False).object["data"] == {"a": "2"}


def test_escaped_colons_are_no_duplicates() -> None:
    body = rb'{"kind":"ConfigMap","apiVersion":"v1","data":{"a":"\u003a","b":"::"}}'
    assert decode("v1", "ConfigMap", body).problems == ()


def test_duplicates_of_any_body_are_found_with_their_paths() -> None:
    assert duplicate_fields(b'{"a":{"b":1,"b":2},"c":[{"d":1},{"d":1,"d":2}]}') == (
        'duplicate field "a.b"',
        'duplicate field "c[1].d"',
    )
    assert duplicate_fields(b'[{"op":"add","path":"/a:b"}]') == ()


def test_of_an_object_too_the_unknown_fields_are_named() -> None:
    found = checked("v1", "Pod", {"spec": {"containers": None, "foo": 1}})
    assert found.problems == ('unknown field "spec.foo"',)
    assert found.object["spec"] == {}


def test_an_object_of_a_wrong_type_is_refused_with_the_reason_apart() -> None:
    with pytest.raises(DecodeError) as refused:
        checked("v1", "ConfigMap", {"data": {"a": 1}})
    assert refused.value.why == "json: cannot unmarshal number into Go struct field ConfigMap.data of type string"


def test_an_unknown_kind_is_refused() -> None:
    with pytest.raises(DecodeError, match='no kind "Nope" is registered for version "v1"'):
        decode("v1", "Nope", b"{}")
    with pytest.raises(DecodeError, match='no kind "PodSpec" is registered for version "v1"'):
        decode("v1", "PodSpec", b"{}")


def test_an_object_is_not_changed_by_reading_it() -> None:
    given_object = {"metadata": {"labels": {}}, "spec": {"overhead": {"cpu": "1000m"}}}
    before = json.dumps(given_object)
    found = normalised("v1", "Pod", given_object)
    found["spec"]["overhead"]["cpu"] = "7"
    assert json.dumps(given_object) == before
