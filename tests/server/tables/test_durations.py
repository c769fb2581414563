import pytest

from situate.server.tables.durations import human_duration, since

S, MINUTE, HOUR, DAY, YEAR = 1_000, 60_000, 3_600_000, 86_400_000, 365 * 86_400_000


@pytest.mark.parametrize(
    "milliseconds, text",
    [
        (-2 * S, "<invalid>"),
        (-1_999, "0s"),
        (0, "0s"),
        (999, "0s"),
        (119 * S, "119s"),
        (2 * MINUTE, "2m"),
        (2 * MINUTE + S, "2m1s"),
        (10 * MINUTE - 1, "9m59s"),
        (10 * MINUTE + 5 * S, "10m"),
        (3 * HOUR - 1, "179m"),
        (3 * HOUR, "3h"),
        (3 * HOUR + 59 * S, "3h"),
        (7 * HOUR + 5 * MINUTE, "7h5m"),
        (8 * HOUR + 5 * MINUTE, "8h"),
        (2 * DAY - 1, "47h"),
        (2 * DAY, "2d"),
        (2 * DAY + HOUR, "2d1h"),
        (8 * DAY + HOUR, "8d"),
        (2 * YEAR - 1, "729d"),
        (2 * YEAR, "2y"),
        (2 * YEAR + DAY, "2y1d"),
        (8 * YEAR + DAY, "8y"),
    ],
)
def test_the_shorter_a_time_the_finer_it_is_told(milliseconds: int, text: str) -> None:
    assert human_duration(milliseconds) == text


@pytest.mark.parametrize("missing", [None, "", "yesterday"])
def test_a_time_that_is_not_there_or_is_none_is_unknown(missing: str | None) -> None:
    assert since(missing, 0) == "<unknown>"


def test_ages_are_told_by_the_clock_of_whoever_asks() -> None:
    assert since("1970-01-01T00:00:01.5Z", 3_400_000_000) == "1s"
