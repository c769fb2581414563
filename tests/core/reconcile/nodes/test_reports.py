"""Which report of an agent counts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from situate.core.reconcile.nodes.reports import AgentReport, parse_report, stale_reason

numbers = st.integers(0, 10**6)


@given(numbers, numbers)
def test_a_report_is_read_as_it_was_written(term: int, number: int) -> None:
    assert parse_report(str(AgentReport(term, number))) == (term, number)


@pytest.mark.parametrize("text", [None, "", "1", "1.", ".1", "1.2.3", "-1.2", "1.x", "٣.١", "1.2 ", "9" * 30 + ".1"])
def test_what_is_no_report_is_none(text: str | None) -> None:
    assert parse_report(text) is None
    assert stale_reason(text or "", None, 1)


@pytest.mark.parametrize(
    "said, held, term, fine",
    [
        pytest.param("1.1", None, 1, True, id="the first"),
        pytest.param("1.2", "1.1", 1, True, id="the next"),
        pytest.param("1.1", "1.2", 1, False, id="an older one"),
        pytest.param("1.2", "1.2", 1, False, id="the same again"),
        pytest.param("1.9", "1.2", 2, False, id="of an agent that was replaced"),
        pytest.param("3.1", "2.7", 2, False, id="of a term that is not yet"),
        pytest.param("2.1", "1.9", 2, True, id="the first of a new agent"),
        pytest.param("1.1", "7.3", 1, True, id="of the first term of a lease that was begun anew"),
        pytest.param("2.1", "1.9", None, True, id="a newer one, without a lease"),
        pytest.param("1.1", "1.9", None, False, id="an older one, without a lease"),
    ],
)
def test_what_is_taken(said: str, held: str | None, term: int | None, fine: bool) -> None:
    assert (stale_reason(said, held, term) == "") == fine


@given(st.lists(st.tuples(st.integers(1, 3), st.integers(1, 5))))
def test_in_any_order_what_is_taken_only_grows(said: list[tuple[int, int]]) -> None:
    held: str | None = None
    taken: list[AgentReport] = []
    for one in said:
        report = AgentReport(*one)
        if not stale_reason(str(report), held, None):
            held = str(report)
            taken.append(report)
    assert taken == sorted(set(taken))
