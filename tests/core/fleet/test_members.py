"""Who is alive: by when a lease was last seen to change, on the listener's own clock."""

from situate.core.fleet.members import FleetMember, Roster

ME, OTHER = FleetMember("me"), FleetMember("other", ("batch",))


def test_a_member_is_alive_for_its_lease_after_the_last_word() -> None:
    roster = Roster(ME)
    roster.seen(OTHER, "1", 5.0, now=100.0)
    assert roster.live(104.9) == (ME, OTHER)
    assert roster.next_end(101.0) == 105.0
    assert roster.live(105.0) == (ME,)


def test_the_same_word_again_is_no_sign_of_life() -> None:
    roster = Roster(ME)
    roster.seen(OTHER, "1", 5.0, now=100.0)
    roster.seen(OTHER, "1", 5.0, now=104.0)
    assert roster.live(106.0) == (ME,)
    roster.seen(OTHER, "2", 5.0, now=106.0)
    assert roster.live(110.0) == (ME, OTHER)


def test_who_takes_its_leave_is_gone_at_once_and_so_is_who_is_not_listed_any_more() -> None:
    roster = Roster(ME)
    roster.seen(OTHER, "1", 5.0, now=100.0)
    roster.seen(FleetMember("third"), "1", 5.0, now=100.0)
    roster.gone("other")
    assert [one.name for one in roster.live(101.0)] == ["me", "third"]
    roster.only(frozenset({"me"}))
    assert roster.live(101.0) == (ME,)


def test_one_is_always_there_oneself_whatever_ones_own_lease_says() -> None:
    roster = Roster(ME)
    roster.seen(ME, "1", 5.0, now=100.0)
    assert roster.live(1_000.0) == (ME,)
    assert roster.long_dead(1_000.0, 20.0) == []


def test_who_was_not_heard_of_for_long_may_be_forgotten() -> None:
    roster = Roster(ME)
    roster.seen(OTHER, "1", 5.0, now=100.0)
    assert roster.long_dead(199.0, 20.0) == []
    assert roster.long_dead(200.0, 20.0) == ["other"]


def test_a_member_decides_on_pods_of_its_schedulers_or_of_any() -> None:
    assert OTHER.decides("batch")
    assert not OTHER.decides("default-scheduler")
    assert ME.decides("whatever")
