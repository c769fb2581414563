"""Token buckets: how many a key may take, how fast they come back, and which key is forgotten."""

from situate.loop.token_buckets import TokenBuckets


def test_a_burst_is_allowed_and_then_the_rate() -> None:
    buckets = TokenBuckets(2.0, 3.0, 10)
    assert [buckets.take("a", 5.0) for _ in range(4)] == [True, True, True, False]
    assert [buckets.take("a", 5.5) for _ in range(2)] == [True, False]
    assert [buckets.take("b", 5.5) for _ in range(4)] == [True, True, True, False]


def test_what_is_refused_costs_nothing_and_parts_of_a_token_add_up() -> None:
    buckets = TokenBuckets(1.0, 1.0, 10)
    assert [buckets.take("a", at) for at in (0.0, 0.25, 0.5, 0.75, 1.0)] == [True, False, False, False, True]


def test_no_more_than_the_burst_is_saved() -> None:
    buckets = TokenBuckets(1.0, 2.0, 10)
    assert buckets.take("a", 0.0)
    assert [buckets.take("a", 1_000.0) for _ in range(3)] == [True, True, False]


def test_the_key_that_was_used_least_recently_is_forgotten() -> None:
    buckets = TokenBuckets(0.0, 1.0, 2)
    assert len(buckets) == 0
    assert [buckets.take(key, 0.0) for key in ("a", "b", "a")] == [True, True, False]
    assert len(buckets) == 2
    assert buckets.take("c", 0.0)  # "b" goes, although it came after "a"
    assert len(buckets) == 2
    assert not buckets.take("a", 0.0)
    assert buckets.take("b", 0.0)
    assert len(buckets) == 2
