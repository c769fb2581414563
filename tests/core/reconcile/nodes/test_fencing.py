"""Who waits how long: no agent runs a pod that the controllers have given to another."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from situate.core.reconcile.nodes.fencing import (
    DRIFT,
    PROFILES,
    STOP_MS,
    NodeProfile,
    agent_stops_ms,
    controller_waits_ms,
)

RATES = st.floats(1 - DRIFT, 1 + DRIFT)
profiles = pytest.mark.parametrize("profile", PROFILES.values(), ids=list(PROFILES))


@profiles
@given(agent=RATES, controller=RATES, late=st.integers(0, 10_000))
def test_the_agent_has_stopped_before_the_controllers_act_however_wrong_their_clocks_are(
    profile: NodeProfile, agent: float, controller: float, late: int
) -> None:
    stopped = profile.lease_ms * (1 - DRIFT) / agent
    acts = late + profile.grace_ms / controller
    assert stopped <= acts + 1e-6


@profiles
def test_the_numbers_leave_room_for_each_other(profile: NodeProfile) -> None:
    stops, stopped = agent_stops_ms(profile.lease_ms), int(profile.lease_ms * (1 - DRIFT))
    assert profile.grace_ms >= controller_waits_ms(profile.lease_ms) > profile.lease_ms > stopped
    assert stops + STOP_MS == stopped
    assert stops >= 2 * profile.renew_ms  # one renewal may be lost
    assert 2 * profile.renew_ms < profile.silent_ms < profile.grace_ms


def test_kubernetes_numbers() -> None:
    profile = PROFILES["kubernetes"]
    assert (profile.lease_ms, profile.renew_ms, profile.grace_ms, profile.startup_ms) == (
        40_000,
        10_000,
        50_000,
        60_000,
    )
    assert (profile.toleration_s, profile.rate, profile.reduced_rate, profile.unhealthy_part) == (300, 0.1, 0.01, 0.55)
    assert (profile.large_zone, profile.absent_ms, profile.finished_pods) == (50, 40_000, 12_500)


def test_the_fast_profile_gives_pods_up_in_time_to_be_bound_within_thirty_seconds() -> None:
    profile = PROFILES["fast"]
    assert profile.lease_ms == 15_000
    assert profile.grace_ms + profile.toleration_s * 1_000 <= 25_000
