"""What is known of one kind, and what each list or event changes in it."""

from typing import Any

import pytest

from builders import node, pod
from situate.core.changes import Change, NodeGone, NodeSeen, ObjectGone, ObjectSeen, PodGone, PodRef, PodSeen
from situate.core.model.meta import ObjectMeta, is_older
from situate.core.model.node import Node
from situate.core.model.pod import Pod
from situate.core.model.workloads import Service
from situate.kube.object_cache import ObjectCache
from situate.wire.watch import Item


def item(name: str, version: int, uid: str = "", *, readable: bool = True) -> Item[Pod]:
    uid = uid or f"uid of {name}"
    found = pod(name, uid=uid, resource_version=str(version)) if readable else None
    return Item("default", name, uid, str(version), found)


def known(*items: Item[Any], version: int = 10) -> ObjectCache:
    cache = ObjectCache(Pod)
    listed(cache, *items, version=version)
    return cache


def listed(cache: ObjectCache, *items: Item[Any], version: int) -> list[str]:
    cache.begin_list()
    for one in items:
        cache.collect(one)
    return told(cache.end_list(str(version)))


def after(cache: ObjectCache, event: str, one: Item[Any]) -> list[str]:
    changes: list[Change] = []
    cache.happened(event, one, changes)
    return told(changes)


def told(changes: list[Change]) -> list[str]:
    """`+a@7`, `-uid of a`."""
    words = []
    for change in changes:
        match change:
            case PodSeen(seen):
                words.append(f"+{seen.metadata.name}@{seen.metadata.resource_version}")
            case PodGone(ref):
                words.append(f"-{ref.uid}")
            case _:
                raise AssertionError(change)
    return words


def test_the_first_list_is_told_whole() -> None:
    assert listed(ObjectCache(Pod), item("a", 3), item("b", 7), version=10) == ["+a@3", "+b@7"]


def test_a_second_list_tells_what_changed_what_came_and_what_is_gone() -> None:
    cache = known(item("same", 3), item("changed", 4), item("gone", 5))
    assert listed(cache, item("same", 3), item("changed", 12), item("new", 13), version=20) == [
        "-uid of gone",
        "+changed@12",
        "+new@13",
    ]
    assert cache.version == "20"


def test_another_uid_under_the_same_name_is_gone_then_seen() -> None:
    cache = known(item("a", 3, "old"))
    assert listed(cache, item("a", 12, "new"), version=20) == ["-old", "+a@12"]
    assert after(cache, "ADDED", item("a", 21, "newer")) == ["-new", "+a@21"]


def test_a_list_that_was_not_finished_changes_nothing() -> None:
    cache = known(item("a", 3), item("b", 4))
    cache.begin_list()
    cache.collect(item("a", 12))
    assert listed(cache, item("a", 3), item("b", 4), version=20) == []


def test_what_is_deleted_or_changed_while_the_list_is_on_its_way_counts_as_it_is_last() -> None:
    cache = known(item("a", 3), item("b", 4))
    cache.begin_list()
    for one in (item("a", 11), item("b", 4), item("c", 12), item("a", 3), item("c", 14)):
        cache.collect(one)
    cache.collect(item("d", 15))
    cache.collect_no_more(item("b", 13))
    cache.collect_no_more(item("d", 16))
    assert told(cache.end_list("20")) == ["-uid of b", "+c@14"]
    assert len(cache) == 2


def test_what_was_collected_can_be_told_before_the_list_is_complete() -> None:
    cache = ObjectCache(Pod)
    cache.begin_list()
    cache.collect(item("a", 3, "old"))
    cache.collect(item("b", 4))
    assert told(cache.collected()) == ["+a@3", "+b@4"]
    assert cache.collected() == []
    cache.begin_list()  # again, from the beginning
    cache.collect(item("a", 11, "new"))
    cache.collect(item("c", 12))
    assert told(cache.collected()) == ["-old", "+a@11", "+c@12"]
    cache.collect_no_more(item("c", 13))
    cache.collect(item("d", 14))
    assert told(cache.end_list("20")) == ["-uid of b", "-uid of c", "+d@14"]


def test_events_are_told_in_order() -> None:
    cache = known(item("a", 3))
    assert after(cache, "MODIFIED", item("a", 11)) == ["+a@11"]
    assert after(cache, "ADDED", item("b", 12)) == ["+b@12"]
    assert after(cache, "DELETED", item("a", 13)) == ["-uid of a"]
    assert (cache.version, len(cache)) == ("13", 1)


def test_an_event_that_is_old_news_is_not_told() -> None:
    cache = known(item("a", 3), version=10)
    after(cache, "MODIFIED", item("a", 11))
    assert after(cache, "MODIFIED", item("a", 11)) == []
    assert after(cache, "MODIFIED", item("a", 9)) == []
    after(cache, "DELETED", item("a", 12))
    assert after(cache, "ADDED", item("a", 11)) == []
    assert cache.version == "12"


def test_several_objects_may_be_written_at_one_version() -> None:
    cache = known(version=10)
    assert after(cache, "ADDED", item("a", 11)) == ["+a@11"]
    assert after(cache, "ADDED", item("b", 11)) == ["+b@11"]


def test_the_deletion_of_what_is_not_known_is_not_told() -> None:
    assert after(known(version=10), "DELETED", item("a", 11)) == []


def test_an_object_that_does_not_decode_is_not_there_and_is_counted() -> None:
    cache = known(item("a", 3, readable=False), version=10)
    assert after(cache, "ADDED", item("b", 11, readable=False)) == []
    assert (len(cache), cache.unreadable, cache.version) == (0, 2, "11")
    assert after(cache, "MODIFIED", item("b", 12)) == ["+b@12"]


def test_of_an_object_that_does_not_decode_any_more_the_last_that_did_stands_until_it_is_deleted() -> None:
    cache = known(item("a", 3), version=10)
    assert after(cache, "MODIFIED", item("a", 11, readable=False)) == []
    assert listed(cache, item("a", 11, readable=False), version=20) == []
    assert len(cache) == 1
    assert after(cache, "DELETED", item("a", 21, readable=False)) == ["-uid of a"]


def test_another_pod_of_the_name_that_does_not_decode_is_not_there_but_the_first_is_gone() -> None:
    cache = known(item("a", 3, "old"), version=10)
    assert after(cache, "ADDED", item("a", 11, "new", readable=False)) == ["-old"]
    assert len(cache) == 0


def test_after_history_went_back_everything_is_told_again() -> None:
    cache = known(item("a", 3), item("b", 4), version=10)
    cache.forget_versions()
    assert listed(cache, item("a", 3), version=5) == ["-uid of b", "+a@3"]
    assert after(cache, "MODIFIED", item("a", 6)) == ["+a@6"]


def test_nodes_go_by_their_name_and_others_with_the_last_that_was_seen_of_them() -> None:
    nodes, services = ObjectCache(Node), ObjectCache(Service)
    service = Service(metadata=ObjectMeta(name="s", namespace="default", uid="u"))
    for cache, one in (
        (nodes, Item("", "n1", "u", "3", node("n1"))),
        (services, Item("default", "s", "u", "3", service)),
    ):
        cache.begin_list()
        cache.collect(one)
    assert nodes.end_list("5") == [NodeSeen(node("n1"))]
    assert services.end_list("5") == [ObjectSeen(service)]
    changes: list[Change] = []
    nodes.happened("DELETED", Item("", "n1", "u", "6", node("n1")), changes)
    services.happened("DELETED", Item("default", "s", "u", "6", None), changes)
    assert changes == [NodeGone("n1"), ObjectGone(service)]


def test_a_pod_that_is_gone_is_named_with_its_uid() -> None:
    cache = known(item("a", 3, "u"))
    cache.begin_list()
    assert cache.end_list("9") == [PodGone(PodRef("default", "a", "u"))]


@pytest.mark.parametrize(
    "one, other, expected",
    [("9", "10", True), ("10", "9", False), ("7", "7", False), ("", "7", False), ("7", "", False), ("x", "7", False)]
    + [("٣", "7", False)],
)
def test_versions_are_compared_as_numbers_if_they_are_numbers(one: str, other: str, expected: bool) -> None:
    assert is_older(one, other) is expected
