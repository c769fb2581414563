"""The kinds of core/v1 against kube-apiserver v1.36's answers to the same bodies: codes, causes, stored objects."""

import copy
from collections.abc import Iterator
from functools import cache

import pytest

from server.kinds.answering import created, ours
from server.kinds.checking import found_by
from server.kinds.corpus import Case, Json, answers, bases, cases, changed
from situate.server.kinds import STRATEGIES, Strategy

RECORDED = answers()
CASES = cases()

ADMISSION = "decided by a plugin of admission, before or after the kind"
REGISTRY = "decided by the registry, before the kind"
EMPTY = "the message shows an empty list or map as null: an object here does not tell them apart"
TWO = "two messages instead of one"
OTHER_ANSWER = {
    'pod spec.overhead={"cpu":"100m"}': ADMISSION,
    'pod spec.preemptionPolicy="Odd"': ADMISSION,
    'pod spec.priorityClassName="A B"': ADMISSION,
    'pod spec.priorityClassName="none-such"': ADMISSION,
    'pod spec.runtimeClassName="A"': ADMISSION,
    'bound-pvc/update spec.resources={"requests":{"storage":"9Gi"}}': ADMISSION,
    'pod/update metadata.uid="other"': REGISTRY,
    'node metadata.namespace="default"': REGISTRY,
    "rich-pod metadata.ownerReferences[1]=": REGISTRY,
    "rich-pod/update metadata.ownerReferences[1]=": REGISTRY,
    "rich-service/update spec.ports[2]=": "the API server answers 500 to a node port that is there twice",
    "rich-pv spec.capacity.storage-": EMPTY,
    "rich-pv/update spec.capacity.storage-": EMPTY,
    "rich-pv/update spec.nodeAffinity.required.nodeSelectorTerms=[]": EMPTY,
    "rich-pv/update spec.nodeAffinity.required.nodeSelectorTerms[0].matchExpressions=[]": EMPTY,
    "rich-pv/update spec.nodeAffinity.required.nodeSelectorTerms[0].matchExpressions[0].values=[]": EMPTY,
    "rich-pv/update spec.nodeAffinity.required.nodeSelectorTerms[0].matchExpressions[0].key-": TWO,
    'rich-pv/update spec.nodeAffinity.required.nodeSelectorTerms[0].matchExpressions[0].key=""': TWO,
}
OVERLAPS = "paths of files in volumes are not compared with each other"
OTHER_WARNINGS = {
    'secret type="kubernetes.io/tls" ;;': "certificates in secrets are not read",
    "rich-pod spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].preference."
    "matchExpressions[0].values[0]=": "values that match nothing are only preferred",
    "rich-pod spec.volumes[0].configMap.items[1]=": OVERLAPS,
    "rich-pod spec.volumes[1].secret.items[1]=": OVERLAPS,
    "rich-pod spec.volumes[5].downwardAPI.items[1]=": OVERLAPS,
    "rich-pod spec.volumes[6].projected.sources[": OVERLAPS,
    "rich-pod spec.volumes[7].ephemeral.volumeClaimTemplate.spec.resources.requests.storage=": "not looked into",
}


def known(text: str, differences: dict[str, str]) -> bool:
    return any(text == one or (one.endswith(("=", ";;", "[")) and text.startswith(one)) for one in differences)


def same(case: Case) -> bool:
    found, real = ours(case), RECORDED[case.text]
    key = "object" if real["code"] < 400 else "causes"
    return bool(found["code"] == real["code"] and found.get(key) == real[key])


def by_base() -> Iterator[object]:
    for base in bases():
        for verb in ("create", "update", "status"):
            found = [case for case in CASES if (case.base, case.verb) == (base, verb)]
            if found:
                yield pytest.param(found, id=f"{verb} of {base} is answered as the API server answers it")


@pytest.mark.parametrize("some", list(by_base()))
def test_answers_are_those_of_the_api_server(some: list[Case]) -> None:
    different = [case.text for case in some if not known(case.text, OTHER_ANSWER) and not same(case)]
    shown = [(text, RECORDED[text].get("causes", RECORDED[text]["code"])) for text in different[:5]]
    assert not different, shown


def test_every_difference_that_is_known_is_one() -> None:
    different = [case.text for case in CASES if known(case.text, OTHER_ANSWER) and not same(case)]
    assert all(any(known(text, {one: ""}) for text in different) for one in OTHER_ANSWER)


def test_at_least_98_percent_of_the_codes_and_messages_are_the_same() -> None:
    codes = sum(ours(case)["code"] == RECORDED[case.text]["code"] for case in CASES)
    assert codes >= 0.98 * len(CASES) >= 300
    assert sum(map(same, CASES)) >= 0.98 * len(CASES)


def test_warnings_at_creation_are_those_of_the_api_server() -> None:
    different = []
    for case in CASES:
        real = RECORDED[case.text]
        if case.verb == "create" and real["code"] < 400 and not known(case.text, {**OTHER_WARNINGS, **OTHER_ANSWER}):
            found = ours(case).get("warnings")
            if found != real["warnings"]:
                different.append((case.text, found, real["warnings"]))
    assert not different


@cache
def accepted() -> list[tuple[Strategy, Json]]:
    """Objects as they are stored, of all kinds; treat them as read-only."""
    starts, found = bases(), []
    for case in CASES:
        if case.verb == "create" and RECORDED[case.text]["code"] < 400 and not known(case.text, OTHER_ANSWER):
            strategy = STRATEGIES["/" + starts[case.base]["kind"]]
            body = changed(starts[case.base], case.changes)
            found.append((strategy, created(body, strategy, show=False)["object"]))
    return found


def has_an_address_twice(obj: Json) -> bool:
    """A node may be created so, and is refused whatever is changed in it: so it is there, too."""
    addresses = obj.get("status", {}).get("addresses", [])
    return any(one in addresses[:index] for index, one in enumerate(addresses))


def test_defaults_given_twice_are_the_same_as_once() -> None:
    for strategy, once in accepted():
        twice = copy.deepcopy(once)
        strategy.default(twice)
        assert twice == once


def test_an_update_that_changes_nothing_is_accepted_and_changes_nothing() -> None:
    for strategy, old in accepted():
        new = copy.deepcopy(old)
        strategy.prepare_update(new, old)
        assert bool(found_by(strategy.validate_update, new, old)) == has_an_address_twice(old)
        assert new == old


def test_the_status_as_it_is_is_accepted_and_changes_nothing() -> None:
    for strategy, old in accepted():
        new = copy.deepcopy(old)
        strategy.prepare_status(new, old)
        assert bool(found_by(strategy.validate_status, new, old)) == has_an_address_twice(old)
        assert new == old


def test_selectable_fields_are_text_under_the_same_keys_whatever_the_object_says() -> None:
    for strategy, obj in accepted():
        found = strategy.selectable(obj)
        assert all(isinstance(value, str) for value in found.values())
        assert list(found) == list(strategy.selectable({}))
