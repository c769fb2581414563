"""Rests between the calls of a controller for one object."""

from situate.core.model.apps import ManagedReplicaSet
from situate.loop.controllers.cache import Reconcile
from situate.loop.controllers.rests import LONGEST_REST_S, REST_FROM_S, REST_TIMES, Rests

WEB, OTHER = Reconcile(ManagedReplicaSet, "default", "web"), Reconcile(ManagedReplicaSet, "default", "other")


def test_a_long_call_is_followed_by_a_rest_of_many_times_its_length() -> None:
    rests = Rests()
    rests.called(WEB, 0.010, 5_000)
    assert rests.after(WEB, 5_001) == 5_000 + 10 * REST_TIMES
    assert rests.after(WEB, 9_000) == 9_000
    assert rests.after(OTHER, 5_001) == 5_001


def test_a_rest_is_never_long() -> None:
    rests = Rests()
    rests.called(WEB, 3.0, 0)
    assert rests.after(WEB, 0) == LONGEST_REST_S * 1_000


def test_a_short_call_needs_no_rest_and_ends_the_former() -> None:
    rests = Rests()
    rests.called(WEB, 0.020, 0)
    rests.called(WEB, REST_FROM_S / 2, 10)
    assert rests.after(WEB, 11) == 11
