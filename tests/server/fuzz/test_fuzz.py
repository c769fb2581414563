"""A short run of `make fuzz-server`, and that its objects are what they are said to be."""

import asyncio
from collections import Counter
from pathlib import Path

import pytest

from server.fuzz.bases import base, kinds
from server.fuzz.client import Request
from server.fuzz.control import GIVE_UP_S
from server.fuzz.objects import Change, Generator, apply, encode, paths_of, root_of
from server.fuzz.repro import culprit
from server.fuzz.run import Fuzz, errors_in
from situate.server.resources import Resource
from situate.wire.schema import decode

COUNT = 240
OBJECTS = 2_000


@pytest.mark.parametrize("resource", kinds(), ids=lambda one: f"{one.api_version} {one.kind}")
def test_every_kind_has_an_object_to_start_from(resource: Resource) -> None:
    found = decode(resource.api_version, resource.kind, encode(base(resource, "a", "b")))
    assert not found.problems


def test_a_seed_makes_the_same_objects_each_time_and_another_makes_others() -> None:
    def bodies(seed: int) -> list[bytes]:
        return [encode(Generator(seed).subject(number, "n").body()) for number in range(100)]

    assert bodies(1) == bodies(1)
    assert bodies(1) != bodies(2)


def test_objects_are_of_every_kind_and_their_changes_reach_all_depths() -> None:
    generator = Generator(1)
    subjects = [generator.subject(number, "n") for number in range(OBJECTS)]
    assert {(one.resource.api_version, one.resource.kind) for one in subjects} == generator.kinds
    depths = Counter(len(change.path) for one in subjects for change in one.changes)
    assert min(depths[depth] for depth in range(1, 9)) > 20
    assert all(encode(one.body()) for one in subjects)


def test_a_change_makes_what_is_missing_on_its_way() -> None:
    resource = next(one for one in kinds() if one.kind == "Pod")
    obj = base(resource, "a", "b")
    path = ("spec", "containers", "[]", "resources", "limits", "{}")
    assert path in dict(paths_of(root_of(resource)))
    apply(obj, root_of(resource), Change(path, "9Ei"))
    assert obj["spec"]["containers"][0]["resources"] == {"limits": {"k": "9Ei"}}
    assert obj["spec"]["containers"][0]["name"] == "c"


def test_errors_in_a_log_are_reported_once_each() -> None:
    line = 'E1116 14:00:50.900606   31040 runner.py:1] "A controller failed; retrying" object="fz-{}" err="x"\n'
    found = errors_in("".join(line.format(number) for number in range(3)) + "I1116 fine\n")
    assert len(found) == 1
    assert "3 times" in found[0]


def test_of_the_last_objects_the_one_that_ends_a_server_is_found_with_its_change() -> None:
    subjects = [Generator(1).subject(number, "n") for number in range(40)]
    bad = next(one for one in subjects if len(one.changes) > 1)
    poison = bad.changes[-1]
    found = culprit(
        subjects, lambda one, body: one is bad and body != bad.plain and body in (bad.body(), bad.body((poison,)))
    )
    assert found == str(Request("POST", bad.collection, encode(bad.body((poison,)))))
    assert culprit(subjects, lambda one, body: False) == ""


def test_odd_objects_neither_end_nor_hold_up_the_server(tmp_path: Path) -> None:
    """The bound of two seconds is for `make fuzz-server`: here, other tests run beside this one."""
    report = asyncio.run(Fuzz(tmp_path, seed=1, count=COUNT, restarts=1).run())
    assert report.deaths == []
    assert report.problems == []
    assert report.objects == COUNT
    assert 0 < report.slowest_s < GIVE_UP_S
