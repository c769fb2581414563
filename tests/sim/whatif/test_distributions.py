"""Lengths of time as people write them, and draws that follow from a seed and a purpose alone."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from situate.sim.whatif.distributions import (
    LONGEST_MS,
    Distribution,
    DistributionKind,
    draw,
    parse_distribution,
    parse_rate,
    parse_span,
)


@pytest.mark.parametrize(
    "text, ms",
    [
        pytest.param("90", 90_000, id="a bare number is seconds"),
        pytest.param("1.5", 1_500, id="with a part of one"),
        pytest.param("250ms", 250, id="milliseconds"),
        pytest.param("1h30m", 5_400_000, id="as Go writes it"),
        pytest.param("2d", 172_800_000, id="days"),
        pytest.param("0", 0, id="nothing"),
    ],
)
def test_a_length_of_time_is_read(text: str, ms: int) -> None:
    assert parse_span(text) == ms


@pytest.mark.parametrize("text", ["", "-1", "soon", "1e9", "10 m", "nan", "inf", "1000000d", "5min", "٣"])
def test_what_is_no_length_of_time_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a duration"):
        parse_span(text)


def test_a_law_is_fixed_exponential_or_uniform() -> None:
    assert parse_distribution("10m") == parse_distribution("fixed:10m") == Distribution(DistributionKind.FIXED, 600_000)
    assert parse_distribution("exp:5m") == Distribution(DistributionKind.EXPONENTIAL, 300_000)
    assert parse_distribution("uniform:60..240") == Distribution(DistributionKind.UNIFORM, 60_000, 240_000)


@pytest.mark.parametrize("text", ["gauss:5m", "uniform:5m", "uniform:9m..5m", "exp:", "exp:-1"])
def test_another_law_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"uniform|duration|longer than"):
        parse_distribution(text)


@given(st.floats(0, 1, exclude_max=True), st.integers(0, 10**9), st.integers(0, 10**9))
def test_what_is_drawn_is_within_its_bounds(lot: float, low: int, more: int) -> None:
    assert low <= Distribution(DistributionKind.UNIFORM, low, low + more).at(lot) <= low + more
    assert 0 <= Distribution(DistributionKind.EXPONENTIAL, low).at(lot) <= LONGEST_MS
    assert Distribution(DistributionKind.FIXED, low).at(lot) == low


def test_the_mean_of_an_exponential_law_is_what_it_says() -> None:
    duration = parse_distribution("exp:60")
    drawn = [duration.at(draw(7, "runs", number)) for number in range(20_000)]
    assert abs(sum(drawn) / len(drawn) - 60_000) < 1_500


def test_a_draw_follows_from_the_seed_and_what_it_is_for() -> None:
    assert draw(1, "gap", 5) == draw(1, "gap", 5)
    assert len({draw(1, "gap", 5), draw(2, "gap", 5), draw(1, "gap", 6), draw(1, "runs", 5)}) == 4


def test_a_rate_is_a_number_a_second_a_minute_or_a_distance() -> None:
    assert parse_rate("poisson:5").gap_ms == 200
    assert parse_rate("poisson:30/m").gap_ms == 2_000
    assert parse_rate("every:10s").gap_ms == 10_000
    assert parse_rate("every:10s").after(0.9) == 10_000


@pytest.mark.parametrize(
    "text", ["poisson", "poisson:0", "poisson:-1", "poisson:5/x", "every:0", "often", "poisson:1e9"]
)
def test_another_rate_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"does not set how pods arrive|the interval must not be 0"):
        parse_rate(text)
