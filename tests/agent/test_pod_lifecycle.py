"""What is next for a pod's containers."""

from dataclasses import replace
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from situate.agent.pod_lifecycle import (
    ContainerStart,
    ContainerState,
    RestartBackoff,
    compute_pod_actions,
    containers_of,
    is_initialized,
    will_restart,
)
from situate.agent.runtime import Run

SECOND = 1_000_000_000
NOW = 1_700_000_000 * SECOND
BACKOFF = RestartBackoff()

Kind = Literal["init", "sidecar", "main"]


def pod(policy: str = "Always") -> dict[str, Any]:
    return {"spec": {"restartPolicy": policy}}


def never(name: str, kind: Kind = "main", **more: Any) -> ContainerState:
    return ContainerState({"name": name}, kind, **more)


def runs(name: str, kind: Kind = "main", *, attempt: int = 0, **more: Any) -> ContainerState:
    return ContainerState({"name": name}, kind, (Run(attempt, 0, "running"),), started=True, ready=True, **more)


def over(
    name: str,
    kind: Kind = "main",
    code: int = 0,
    *,
    attempt: int = 0,
    ago_s: int = 0,
    waited_s: int = 0,
    ran_s: int = 1,
    reason: str = "",
) -> ContainerState:
    end = NOW - ago_s * SECOND
    run = Run(attempt, waited_s * 1_000, "exited", started_ns=end - ran_s * SECOND, finished_ns=end, code=code)
    return ContainerState({"name": name}, kind, (replace(run, reason=reason),))


def starts(*containers: ContainerState, policy: str = "Always", ending: bool = False) -> list[str]:
    return [one.container for one in compute_pod_actions(pod(policy), containers, NOW, BACKOFF, ending=ending).start]


def stops(*containers: ContainerState, policy: str = "Always", ending: bool = False) -> list[str]:
    return compute_pod_actions(pod(policy), containers, NOW, BACKOFF, ending=ending).stop


@pytest.mark.parametrize(
    "containers, expected",
    [
        pytest.param([never("a"), never("b")], ["a", "b"], id="containers begin together"),
        pytest.param([never("i", "init"), never("j", "init"), never("a")], ["i"], id="init containers one by one"),
        pytest.param(
            [runs("i", "init"), never("j", "init"), never("a")], [], id="the next waits for the one that runs"
        ),
        pytest.param([over("i", "init"), never("j", "init"), never("a")], ["j"], id="and begins when it is done"),
        pytest.param([over("i", "init"), over("j", "init"), never("a")], ["a"], id="then come the others"),
        pytest.param([never("s", "sidecar"), never("a")], ["s"], id="a sidecar begins in its turn"),
        pytest.param(
            [ContainerState({"name": "s"}, "sidecar", (Run(0, 0, "running"),)), never("a")],
            [],
            id="others wait until it has started",
        ),
        pytest.param([runs("s", "sidecar"), never("a")], ["a"], id="not until it has ended"),
        pytest.param([over("s", "sidecar"), runs("a")], ["s"], id="a sidecar that ends is begun again"),
        pytest.param([over("i", "init", 1), runs("a")], [], id="init containers are not run again beside the others"),
        pytest.param([runs("a"), over("b")], ["b"], id="what has ended is begun again by itself"),
        pytest.param([never("a", retry_ns=NOW + 1)], [], id="what could not begin is not tried again at once"),
    ],
)
def test_what_begins(containers: list[ContainerState], expected: list[str]) -> None:
    assert starts(*containers) == expected


@pytest.mark.parametrize(
    "policy, code, again",
    [
        ("Always", 0, True),
        ("Always", 1, True),
        ("OnFailure", 0, False),
        ("OnFailure", 1, True),
        ("Never", 0, False),
        ("Never", 1, False),
    ],
)
def test_what_has_ended_is_begun_again_as_the_policy_says(policy: str, code: int, again: bool) -> None:
    assert bool(starts(over("a", code=code), policy=policy)) == again
    assert starts(over("a", code=code), runs("b"), policy=policy) == (["a"] if again else []), "beside one that runs"


@pytest.mark.parametrize(
    "containers, policy, outcome",
    [
        pytest.param([over("a"), over("b")], "Never", "Succeeded", id="all ended well"),
        pytest.param([over("a"), over("b", code=1)], "Never", "Failed", id="one did not"),
        pytest.param([over("a"), runs("b")], "Never", "", id="one still runs"),
        pytest.param([over("i", "init", 1), never("a")], "Never", "Failed", id="an init container did not end well"),
        pytest.param([over("i", "init", 1), never("a")], "OnFailure", "", id="and will be tried again"),
        pytest.param([over("a")], "Always", "", id="what restarts always never ends"),
        pytest.param([over("a", reason="Fenced")], "OnFailure", "", id="what the fence ended is not done"),
        pytest.param([over("a", reason="Fenced")], "Never", "Failed", id="and has failed if it must not run again"),
        pytest.param([over("i", "init", reason="Fenced"), never("a")], "Never", "Failed", id="as an init container"),
    ],
)
def test_how_a_pod_ends(containers: list[ContainerState], policy: str, outcome: str) -> None:
    assert compute_pod_actions(pod(policy), containers, NOW, BACKOFF, ending=False).outcome == outcome


def test_whatever_is_to_end_ends_before_the_sidecars_and_those_last_one_first() -> None:
    first, second = runs("s", "sidecar"), runs("t", "sidecar")
    assert stops(first, second, runs("a"), runs("b"), ending=True) == ["a", "b"]
    assert stops(first, second, over("a"), over("b"), ending=True) == ["t"]
    assert stops(first, over("t", "sidecar"), over("a"), over("b"), ending=True) == ["s"]


def test_sidecars_end_when_the_pod_has_done_its_work() -> None:
    assert stops(runs("s", "sidecar"), over("a"), policy="Never") == ["s"]


def test_what_a_probe_condemns_is_stopped() -> None:
    assert stops(runs("a", condemned=True), runs("b")) == ["a"]


def test_nothing_begins_when_all_is_to_end() -> None:
    assert starts(never("a"), ending=True) == []


@pytest.mark.parametrize(
    "attempt, waited_s, ran_s, expected_s",
    [
        pytest.param(0, 0, 1, 0, id="the first time at once"),
        pytest.param(1, 0, 1, 10, id="then after ten seconds"),
        pytest.param(2, 10, 1, 20, id="then after twice that"),
        pytest.param(9, 200, 1, 300, id="never more than five minutes"),
        pytest.param(10, 300, 1, 300, id="however often"),
        pytest.param(10, 300, 600, 0, id="at once again after ten minutes of running"),
    ],
)
def test_how_long_it_waits(attempt: int, waited_s: int, ran_s: int, expected_s: int) -> None:
    container = over("a", attempt=attempt, waited_s=waited_s, ran_s=ran_s, ago_s=0)
    made = compute_pod_actions(pod(), [container], NOW, BACKOFF, ending=False)
    if expected_s:
        assert (made.start, made.wake_ns) == ([], NOW + expected_s * SECOND)
    later = compute_pod_actions(pod(), [container], NOW + expected_s * SECOND, BACKOFF, ending=False)
    assert later.start == [ContainerStart("a", attempt + 1, expected_s * 1_000)]


@pytest.mark.parametrize("kind", ["init", "main", "sidecar"])
@pytest.mark.parametrize("code", [0, 137])
def test_what_the_fence_ended_runs_again_at_once_with_no_backoff_to_follow(kind: Kind, code: int) -> None:
    fenced = over("a", kind, code, attempt=9, waited_s=200, reason="Fenced")
    made = compute_pod_actions(pod("OnFailure"), [fenced, never("b")], NOW, BACKOFF, ending=False)
    assert made.start[0] == ContainerStart("a", 10, 0)


@given(st.integers(min_value=1, max_value=40))
def test_waits_never_shrink_while_runs_are_short(restarts: int) -> None:
    waited, run = [], Run(0, 0, "exited")
    for _ in range(restarts):
        waited.append(BACKOFF.after(run))
        run = Run(run.attempt + 1, waited[-1], "exited")
    assert waited == sorted(waited)
    assert waited[-1] <= 300_000


def test_the_first_run_has_number_0_and_did_not_wait() -> None:
    made = compute_pod_actions(pod(), [never("a")], NOW, BACKOFF, ending=False)
    assert made.start == [ContainerStart("a", 0, 0)]


def test_what_could_not_begin_is_tried_again_when_it_is_time() -> None:
    waiting = [never("a", retry_ns=NOW + 5), never("b", retry_ns=NOW + 3), never("c", retry_ns=NOW)]
    made = compute_pod_actions(pod(), waiting, NOW, BACKOFF, ending=False)
    assert ([one.container for one in made.start], made.wake_ns) == (["c"], NOW + 3)


def test_containers_come_in_start_order_and_a_sidecar_is_an_init_container_that_restarts_always() -> None:
    inits = [{"name": "i"}, {"name": "s", "restartPolicy": "Always"}]
    found = containers_of({"spec": {"initContainers": inits, "containers": [{"name": "c"}]}})
    assert [(one["name"], kind) for one, kind in found] == [("i", "init"), ("s", "sidecar"), ("c", "main")]


@pytest.mark.parametrize(
    "container, policy, again",
    [
        pytest.param(never("a"), "Always", False, id="what never ran is not begun again but for the first time"),
        pytest.param(runs("a"), "Always", False, id="nor is what runs"),
        pytest.param(runs("s", "sidecar"), "Always", False, id="not even a sidecar"),
        pytest.param(over("s", "sidecar"), "Never", True, id="a sidecar is, whatever the policy"),
        pytest.param(over("i", "init", 1), "OnFailure", True, id="an init container that failed"),
        pytest.param(over("i", "init", 1), "Always", True, id="also with Always"),
        pytest.param(over("i", "init", 1), "Never", False, id="but not with Never"),
        pytest.param(over("i", "init", 0), "Always", False, id="nor one that is done"),
        pytest.param(over("i", "init", reason="Fenced"), "OnFailure", True, id="one that the fence ended is not"),
    ],
)
def test_which_containers_run_again(container: ContainerState, policy: str, again: bool) -> None:
    assert will_restart(container, policy) == again


@pytest.mark.parametrize(
    "containers, initialized",
    [
        pytest.param([never("a")], True, id="there is nothing to initialize"),
        pytest.param([never("i", "init"), never("a")], False, id="an init container has not begun"),
        pytest.param([runs("i", "init"), never("a")], False, id="or runs"),
        pytest.param([over("i", "init", 1), never("a")], False, id="or failed"),
        pytest.param([over("i", "init"), never("a")], True, id="or is done"),
        pytest.param([over("i", "init"), never("s", "sidecar"), never("a")], False, id="a sidecar has not started"),
        pytest.param([over("s", "sidecar"), never("a")], False, id="it ended before the others began"),
        pytest.param([runs("s", "sidecar"), never("a")], True, id="it has started"),
        pytest.param([never("i", "init"), runs("a")], True, id="what runs was initialized once"),
        pytest.param([over("i", "init"), runs("j", "init"), never("a")], False, id="all must be done"),
    ],
)
def test_when_a_pod_is_initialized(containers: list[ContainerState], initialized: bool) -> None:
    assert is_initialized(containers) == initialized
