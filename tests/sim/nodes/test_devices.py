"""Devices in worlds with agents: none is given twice or lost, and the checkers notice if one is."""

import logging
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest

from situate.core.engine import state as state_module
from situate.core.engine.assumed_claims import AssumedClaims
from situate.core.reconcile import resourceclaim
from situate.server.placing.device_transaction import DeviceTransactions
from situate.sim.nodes.checkers import PodState
from situate.sim.nodes.claim_checker import CLAIMS, ClaimChecker
from situate.sim.nodes.run_log import RunLog
from situate.sim.nodes.virtual_time import VirtualLoop
from situate.sim.nodes.world import run

GPU = ("gpu.example.com", "n1", "gpu-0")
WEB = {"resource": "pods", "name": "web", "uid": "uid-web"}


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.parametrize("seed", [3, 6])
def test_nothing_goes_wrong_in_world(seed: int) -> None:
    outcome = run(seed, devices=True)
    assert outcome.violations == (), "\n".join(outcome.log[-80:])
    assert outcome.allocations > 0


def test_about_a_third_of_the_worlds_have_devices_and_the_others_are_as_ever() -> None:
    assert run(5, kinds=(), devices=False).allocations == 0
    assert run(5, kinds=(), devices=True).allocations > 0


# -- bugs that are planted ---------------------------------------------------------------------------------------------


def claims_are_taken_from_pods_that_stop(patch: pytest.MonkeyPatch) -> None:
    real = resourceclaim.is_done
    patch.setattr(resourceclaim, "is_done", lambda pod: real(pod) or pod.metadata.deletion_timestamp is not None)


def claims_stay_reserved(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(resourceclaim, "_is_over", lambda *_: False)


class Forgetful(AssumedClaims):
    def take(self, key: str, pod: Any, decision: Any) -> None:
        pass


def nobody_remembers_what_was_given(patch: pytest.MonkeyPatch) -> None:
    """Neither the scheduler nor, in the transaction, the server."""
    patch.setattr(state_module, "AssumedClaims", Forgetful)
    patch.setattr(DeviceTransactions, "extend", lambda *_: None)


@pytest.mark.parametrize(
    "plant, said, seed",
    [
        pytest.param(claims_are_taken_from_pods_that_stop, "still runs", 1, id="claims are taken from pods that stop"),
        pytest.param(claims_stay_reserved, "which is gone", 1, id="claims stay reserved"),
        pytest.param(nobody_remembers_what_was_given, "has it", 1, id="nobody remembers what was given"),
    ],
)
def test_the_simulation_finds(plant: Callable[[pytest.MonkeyPatch], None], said: str, seed: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        plant(patch)
        found = run(seed, kinds=("churn",), devices=True).violations
    assert any(said in line for line in found), found


# -- the checker -------------------------------------------------------------------------------------------------------


def claim(name: str, *users: dict[str, str], given: bool = True, **meta: Any) -> tuple[str, bytes]:
    driver, pool, device = GPU
    devices = {"results": [{"request": "r", "driver": driver, "pool": pool, "device": device}]}
    status: dict[str, Any] = {"allocation": {"devices": devices}} if given else {}
    if users:
        status["reservedFor"] = list(users)
    body = {"metadata": {"name": name, "uid": f"uid-{name}", **meta}, "status": status}
    return f"{CLAIMS}default/{name}", msgspec.json.encode(body)


Checker = Callable[..., tuple[ClaimChecker, list[str]]]


@pytest.fixture
def checker() -> Iterator[Checker]:
    """A checker and its violations, while machines run the pods of these uids."""
    loop = VirtualLoop()

    def made(*running: str) -> tuple[ClaimChecker, list[str]]:
        log = RunLog(loop)
        return ClaimChecker(log, {uid: ["n1"] for uid in running}), log.violations

    yield made
    loop.close()


def test_a_device_in_two_claims_is_a_violation(checker: Checker) -> None:
    claims, violations = checker()
    claims.written(*claim("a"))
    claims.written(*claim("b", given=False))
    assert violations == []
    claims.written(*claim("b"))
    assert violations == ["device gpu.example.com/n1/gpu-0 is given to claim default/b, and default/a has it"]


@pytest.mark.parametrize("taken", ["reservation", "devices", "claim"])
@pytest.mark.parametrize("running", [("uid-web",), ()], ids=["it runs", "it does not run"])
def test_what_is_taken_from_a_pod_that_runs_is_a_violation(
    checker: Checker, taken: str, running: tuple[str, ...]
) -> None:
    claims, violations = checker(*running)
    claims.written(*claim("a", WEB))
    if taken == "claim":
        claims.gone(claim("a")[0])
    else:
        claims.written(*(claim("a") if taken == "reservation" else claim("a", WEB, given=False)))
    assert len(violations) == len(running)


@pytest.mark.parametrize(
    "claims_of_it, said",
    [
        pytest.param([], "without its claim default/a", id="no claim"),
        pytest.param([claim("a", given=False)], "is not allocated", id="not allocated"),
        pytest.param([claim("a")], "is not reserved for it", id="not reserved"),
        pytest.param([claim("a", WEB)], "is bound to n2, where", id="on another node"),
    ],
)
def test_a_pod_without_its_devices_may_not_be_bound(
    checker: Checker, claims_of_it: list[tuple[str, bytes]], said: str
) -> None:
    claims, violations = checker()
    for key, value in claims_of_it:
        claims.written(key, value)
    spec = {"resourceClaims": [{"name": "gpu", "resourceClaimName": "a"}]}
    body = {"metadata": {"namespace": "default"}, "spec": spec}
    claims.bound(PodState("uid-web", "default/web", "n2", "Pending", False, {}, body))
    assert [said in line for line in violations] == [True]


def test_what_is_left_behind_is_told(checker: Checker) -> None:
    claims, _ = checker()
    owner = {"kind": "Pod", "name": "web", "uid": "uid-web"}
    claims.written(*claim("a", WEB, ownerReferences=[owner]))
    assert list(claims.left({"uid-web"})) == []
    assert len(list(claims.left(set()))) == 2
