"""Until when an agent may run pods without a word from the control plane."""

from hypothesis import given
from hypothesis import strategies as st

from situate.agent.fence import Fence
from situate.core.reconcile.nodes.fencing import DRIFT, FAST, KUBERNETES, agent_stops_ms, controller_waits_ms


def test_it_closes_when_the_profiles_say() -> None:
    for profile in (KUBERNETES, FAST):
        fence = Fence(100.0, profile.lease_ms // 1_000)
        assert fence.closes_at == 100.0 + agent_stops_ms(profile.lease_ms) / 1_000
        assert not fence.is_closed(fence.closes_at - 0.001)
        assert fence.is_closed(fence.closes_at)


def test_a_shorter_lease_counts_when_it_is_sent_and_a_longer_one_when_it_is_accepted() -> None:
    fence = Fence(0.0, 40)
    fence.sent(15)
    assert fence.closes_at == Fence(0.0, 15).closes_at
    fence.accepted(5.0, 15)
    fence.sent(40)
    assert fence.closes_at == Fence(5.0, 15).closes_at
    fence.accepted(6.0, 40)
    assert fence.closes_at == Fence(6.0, 40).closes_at


def test_a_longer_lease_counts_also_if_no_time_has_passed_since_the_last_renewal() -> None:
    fence = Fence(5.0, 15)
    fence.accepted(5.0, 40)
    assert fence.closes_at == Fence(5.0, 40).closes_at


def test_an_answer_that_comes_late_does_not_close_it_sooner() -> None:
    fence = Fence(0.0, 40)
    fence.accepted(10.0, 40)
    fence.accepted(5.0, 40)
    assert fence.renewed_at == 10.0


@given(
    st.lists(st.tuples(st.sampled_from([15, 40]), st.booleans(), st.booleans()), min_size=1, max_size=12),
    st.floats(1 - DRIFT, 1 + DRIFT),
    st.floats(1 - DRIFT, 1 + DRIFT),
)
def test_the_agent_has_stopped_before_the_controller_acts(
    renewals: list[tuple[int, bool, bool]], agent_rate: float, controller_rate: float
) -> None:
    """Each renewal arrives or not, and is answered or not. Real time; both clocks run at their own rate."""
    fence, seen, lease_s = Fence(0.0, 40), 0.0, 40
    for number, (wanted_s, arrives, answered) in enumerate(renewals):
        at = float(number)
        fence.sent(wanted_s)
        if arrives:
            seen, lease_s = at, wanted_s
            if answered:
                fence.accepted(at * agent_rate, wanted_s)
    stopped = (fence.closes_at + 2.0) / agent_rate
    acts = seen + controller_waits_ms(lease_s * 1_000) / 1_000 / controller_rate
    assert stopped <= acts + 1e-6
