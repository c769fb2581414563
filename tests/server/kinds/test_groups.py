"""The kinds beyond core/v1 against kube-apiserver v1.36's answers to the same bodies: objects, causes, their order."""

import copy
from typing import Any

import pytest

from server.kinds.corpus_groups import Case, Json, answers, cases
from server.kinds.group_writes import strategy_of, written
from situate.server.kinds import STRATEGIES
from situate.server.resources import BY_KIND, RESOURCES

OURS = "is stored and has no effect here"
"""The warning of kinds that the server only keeps."""
RECORDED = answers()
CASES = cases()


def spoken(value: Any) -> Any:
    """Without nulls: whether a field that is nothing is written is the schema's business."""
    if isinstance(value, dict):
        return {key: spoken(one) for key, one in value.items() if one is not None}
    return [spoken(one) for one in value] if isinstance(value, list) else value


def without_identity(obj: Json) -> Json:
    metadata = {key: value for key, value in obj["metadata"].items() if key not in ("uid", "resourceVersion")}
    return obj | {"metadata": metadata}


def titles(case: Case) -> str:
    return case.title


@pytest.mark.parametrize("case", [case for case in CASES if RECORDED[case.title]["code"] < 300], ids=titles)
def test_what_kube_apiserver_takes_becomes_the_same_object(case: Case) -> None:
    found = written(case)
    assert found.causes == []
    assert spoken(without_identity(found.object)) == spoken(RECORDED[case.title]["object"])


@pytest.mark.parametrize("case", [case for case in CASES if RECORDED[case.title]["code"] >= 300], ids=titles)
def test_what_kube_apiserver_refuses_is_refused_in_the_same_words(case: Case) -> None:
    found = written(case)
    assert [[one.field, one.message, one.reason] for one in found.causes] == RECORDED[case.title]["causes"]


@pytest.mark.parametrize("case", [case for case in CASES if case.change is None], ids=titles)
def test_warnings_are_kube_apiserver_s(case: Case) -> None:
    found = written(case)
    warnings = [] if found.causes else [one for one in found.warnings if OURS not in one]
    assert warnings == RECORDED[case.title].get("warnings", [])


@pytest.mark.parametrize("case", [case for case in CASES if RECORDED[case.title]["code"] < 300], ids=titles)
def test_defaulting_again_changes_nothing(case: Case) -> None:
    once = written(case).object
    again = copy.deepcopy(once)
    strategy_of(BY_KIND[once["apiVersion"], once["kind"]]).default(again)
    assert again == once


def test_every_kind_that_is_stored_has_a_strategy() -> None:
    stored = {f"{one.group}/{one.kind}" for one in RESOURCES if one.stored}
    assert stored - set(STRATEGIES) == set()


def test_there_are_answers_to_all_cases_and_to_nothing_else() -> None:
    assert [case.title for case in CASES] == list(dict.fromkeys(case.title for case in CASES))
    assert {case.title for case in CASES} == set(RECORDED)
