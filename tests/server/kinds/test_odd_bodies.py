"""Bodies that decode and make no sense: whatever a field holds, it is taken or refused, and nothing breaks."""

import copy
from collections.abc import Iterator
from typing import Any

import pytest

from server.kinds.corpus_groups import Case, Json, cases, merged
from server.kinds.group_writes import created, updated
from situate.wire.schema import DecodeError

ODD: tuple[Any, ...] = ({}, [], "", 0, -1, 2**31 - 1, True, None, [{}], ["", ""], {"": ""})
DEEP = 5
"""Containers further down than this are the pods' business."""


def paths(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if at:
        yield at
    if isinstance(value, dict):
        for key, one in value.items():
            yield from paths(one, (*at, key))
    elif isinstance(value, list):
        for index, one in enumerate(value):
            yield from paths(one, (*at, index))


def spoiled(body: Json) -> Iterator[Json]:
    for path in paths(body):
        if path[0] in ("apiVersion", "kind", "metadata") or ("containers" in path and len(path) > DEEP):
            continue
        for value in ODD:
            found = copy.deepcopy(body)
            place: Any = found
            for step in path[:-1]:
                place = place[step]
            place[path[-1]] = value
            yield found


def good(case: Case) -> bool:
    """One rich and right body of each kind is enough."""
    return case.title in (
        "deployment: some of rolling update",
        "statefulset: claims",
        "daemonset: surge",
        "job: failure policy by condition",
        "job: success policy",
        "cronjob: macro",
        "pdb: policy",
        "podgroup: gang",
        "lease: held",
        "storageclass: topology",
        "csidriver: least",
        "csinode: good",
        "capacity: good",
        "attachment: good",
        "clusterrole: aggregates",
        "rolebinding: good",
        "claim: config",
        "claim: first available",
        "slice: good",
        "endpointslice: good",
        "event: good",
    )


@pytest.mark.parametrize("case", [case for case in cases() if good(case)], ids=lambda case: case.title)
def test_no_odd_value_breaks_a_write(case: Case) -> None:
    old = created(case.body)
    assert old.causes == []
    tried = 0
    for body in spoiled(case.body):
        try:
            made = created(body)
        except DecodeError:
            continue
        tried += 1
        new = merged({}, made.object) | {"metadata": old.object["metadata"]}
        updated(old.object, new)
        updated(old.object, new, "status")
    assert tried > 0
