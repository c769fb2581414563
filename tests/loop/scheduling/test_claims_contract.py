"""Claims for devices in every world: written for a reserved pod, or given back, and answered once."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from msgspec import convert
from msgspec.structs import replace

from loop.scheduling.worlds import WORLDS, KubeWorld, Opener, PortWorld, play
from situate.core.changes import Change, ClaimsBound, ClaimsFailed, PodRef
from situate.core.effects import BindClaims, ClaimToBind, ClaimToCreate, ExtendedResource, ReleaseClaim, UnreserveClaims
from situate.core.model.devices import AllocationResult, DeviceRequest
from situate.loop.scheduling import claims, pre_bind
from situate.loop.scheduling.claims import OVERTAKEN, RUNNING_PREBIND
from situate.loop.scheduling.port import (
    NOT_LEADER,
    STOPPING,
    AllocateClaim,
    ClaimError,
    ClaimOutcome,
    ClaimWrite,
    CreateClaim,
    ExtendedStatus,
    ProtectClaim,
    ReserveClaim,
    UnreserveClaim,
)
from situate.server.requests import Object

FINALIZER = "resource.kubernetes.io/delete-protection"
DRIVER = "gpu.example.com"
NODE = {"nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}]}
in_both_worlds = pytest.mark.parametrize("opener", WORLDS)
Interfere = Callable[[PortWorld], Awaitable[None]]


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pre_bind, "LOOK_S", 0.01)
    monkeypatch.setattr(claims, "RETRY_S", 0.001)
    monkeypatch.setattr(claims, "RETRY_MAX_S", 0.001)


def allocation(device: str = "g", **result: Any) -> AllocationResult:
    one = {"request": "r", "driver": DRIVER, "pool": "n1", "device": device, **result}
    return convert({"devices": {"results": [one]}, "nodeSelector": NODE}, AllocationResult)


def written(device: str = "g", **fields: Any) -> Object:
    """An allocation that somebody has written."""
    one = {"request": "r", "driver": DRIVER, "pool": "n1", "device": device, **fields}
    return {"devices": {"results": [one]}, "nodeSelector": NODE, "allocationTimestamp": "2026-01-01T00:00:00Z"}


def user(name: str, uid: str) -> Object:
    return {"resource": "pods", "name": name, "uid": uid}


def given(world: PortWorld, name: str = "gpu") -> list[str]:
    """The devices of a claim."""
    found = world.resource_claim(name).get("status", {}).get("allocation", {})
    return [one["device"] for one in found.get("devices", {}).get("results", [])]


def users(world: PortWorld, name: str = "gpu") -> list[str]:
    return [one["name"] for one in world.resource_claim(name).get("status", {}).get("reservedFor", [])]


async def ask(world: PortWorld, one: AllocationResult | None = None, attempt: int = 1) -> BindClaims:
    """A pod with a claim that is to get a device."""
    uid = await world.add_resource_claim()
    ref = await world.add_pod()
    return BindClaims(ref, "n1", attempt, (ClaimToBind("gpu", uid, one or allocation()),))


def problem(told: Change) -> str:
    assert isinstance(told, ClaimsFailed)
    assert told.problem.startswith(RUNNING_PREBIND)
    return told.problem.removeprefix(RUNNING_PREBIND)


def interfere(world: PortWorld, kind: type[ClaimWrite], first: Interfere, times: int = 1) -> None:
    """Before writes of one kind, something else happens."""
    write: Callable[[ClaimWrite], Awaitable[ClaimOutcome]] = world.port.write_resource_claim
    left = [times]

    async def write_later(one: ClaimWrite) -> ClaimOutcome:
        if isinstance(one, kind) and left[0]:
            left[0] -= 1
            await first(world)
        return await write(one)

    world.port.write_resource_claim = write_later


def lose(world: PortWorld, kind: type[ClaimWrite], times: int = 1, *, done: bool) -> None:
    """Have the answers to writes of one kind be lost; `done`: the write was made."""
    write: Callable[[ClaimWrite], Awaitable[ClaimOutcome]] = world.port.write_resource_claim
    left = [times]

    async def write_and_lose(one: ClaimWrite) -> ClaimOutcome:
        if not isinstance(one, kind) or not left[0]:
            return await write(one)
        left[0] -= 1
        if done:
            await write(one)
        return ClaimOutcome("the connection broke", retry=True, lost=True)

    world.port.write_resource_claim = write_and_lose


# -- writing -----------------------------------------------------------------------------------------------------------


@in_both_worlds
def test_a_claim_gets_its_devices_its_finalizer_and_its_user(opener: Opener) -> None:
    async def scenario(world: PortWorld) -> None:
        effect = await ask(world)
        world.performer.perform([effect])
        [told] = await world.answers()
        assert isinstance(told, ClaimsBound)
        assert (told.pod, told.attempt) == (effect.pod, 1)
        claim = world.resource_claim()
        assert claim["metadata"]["finalizers"] == [FINALIZER]
        assert claim["status"] == {
            "allocation": {
                "devices": {"results": [{"request": "r", "driver": DRIVER, "pool": "n1", "device": "g"}]},
                "nodeSelector": NODE,
                "allocationTimestamp": "2026-01-01T00:00:00Z",
            },
            "reservedFor": [user("web", effect.pod.uid)],
        }
        [shown] = told.claims
        assert shown.metadata.resource_version == claim["metadata"]["resourceVersion"]
        assert shown.status.allocation == replace(allocation(), allocation_timestamp="2026-01-01T00:00:00Z")

    play(opener, scenario)


@in_both_worlds
def test_a_shared_claim_keeps_its_users(opener: Opener) -> None:
    async def scenario(world: PortWorld) -> None:
        uid = await world.add_resource_claim()
        status = {"allocation": written(), "reservedFor": [user("other", "uid-o")]}
        await world.change("ResourceClaim", "gpu", lambda claim: claim.update(status=status))
        ref = await world.add_pod()
        world.performer.perform([BindClaims(ref, "n1", 1, (ClaimToBind("gpu", uid),))])
        [told] = await world.answers()
        assert isinstance(told, ClaimsBound)
        assert users(world) == ["other", "web"]
        assert given(world) == ["g"]

    play(opener, scenario)


@in_both_worlds
def test_a_claim_that_is_reserved_for_the_pod_already_is_not_written(opener: Opener) -> None:
    async def scenario(world: PortWorld) -> None:
        uid = await world.add_resource_claim()
        ref = await world.add_pod()
        status = {"allocation": written(), "reservedFor": [user("web", ref.uid)]}
        await world.change("ResourceClaim", "gpu", lambda claim: claim.update(status=status))
        world.show()
        before = world.writes
        world.performer.perform([BindClaims(ref, "n1", 1, (ClaimToBind("gpu", uid),))])
        [told] = await world.answers()
        assert isinstance(told, ClaimsBound)
        assert world.writes == before

    play(opener, scenario)


@in_both_worlds
@pytest.mark.parametrize("kind", [ProtectClaim, AllocateClaim])
def test_a_claim_that_was_changed_meanwhile_is_read_and_written_again(opener: Opener, kind: type[ClaimWrite]) -> None:
    async def label(world: PortWorld) -> None:
        await world.change("ResourceClaim", "gpu", lambda claim: claim["metadata"].update(labels={"a": "b"}))

    async def scenario(world: PortWorld) -> None:
        effect = await ask(world)
        interfere(world, kind, label)
        world.performer.perform([effect])
        [told] = await world.answers()
        assert isinstance(told, ClaimsBound)
        assert (given(world), users(world)) == (["g"], ["web"])
        assert world.resource_claim()["metadata"]["labels"] == {"a": "b"}
        assert world.resource_claim()["metadata"]["finalizers"] == [FINALIZER]

    play(opener, scenario)


async def _allocate(world: PortWorld) -> None:
    status = {"allocation": written("other"), "reservedFor": [user("else", "uid-e")]}
    await world.change("ResourceClaim", "gpu", lambda claim: claim.update(status=status))


async def _remove(world: PortWorld) -> None:
    await world.remove("ResourceClaim", "gpu")


async def _replace(world: PortWorld) -> None:
    await world.remove("ResourceClaim", "gpu")
    await world.add_resource_claim()


@in_both_worlds
@pytest.mark.parametrize(
    "first, expected",
    [
        pytest.param(_allocate, "claim default/gpu got allocated elsewhere in the meantime", id="allocated"),
        pytest.param(_remove, "claim default/gpu got deleted in the meantime", id="deleted"),
        pytest.param(_replace, "claim default/gpu got deleted in the meantime", id="replaced"),
    ],
)
def test_a_claim_that_is_not_as_it_was_decided_on_is_left_alone(
    opener: Opener, first: Interfere, expected: str
) -> None:
    async def scenario(world: PortWorld) -> None:
        effect = await ask(world)
        interfere(world, AllocateClaim, first)
        world.performer.perform([effect])
        [told] = await world.answers()
        if isinstance(told, ClaimsFailed) and "not found" in told.problem:
            assert first is _remove  # the server said so
        else:
            assert problem(told) == expected
        left = world.all("ResourceClaim")
        assert all("web" not in str(claim.get("status")) for claim in left)
        assert world.counted.failures == ["claims"]

    play(opener, scenario)


@in_both_worlds
def test_a_shared_claim_that_lost_its_devices_is_not_reserved(opener: Opener) -> None:
    async def deallocate(world: PortWorld) -> None:
        await world.change("ResourceClaim", "gpu", lambda claim: claim.update(status={}))

    async def scenario(world: PortWorld) -> None:
        uid = await world.add_resource_claim()
        await world.change("ResourceClaim", "gpu", lambda claim: claim.update(status={"allocation": written()}))
        ref = await world.add_pod()
        interfere(world, ReserveClaim, deallocate)
        world.performer.perform([BindClaims(ref, "n1", 1, (ClaimToBind("gpu", uid),))])
        [told] = await world.answers()
        assert problem(told) == "claim default/gpu got deallocated elsewhere in the meantime"
        assert users(world) == []

    play(opener, scenario)


@in_both_worlds
@pytest.mark.parametrize("done", [True, False])
@pytest.mark.parametrize("kind", [ProtectClaim, AllocateClaim])
def test_a_write_whose_answer_is_lost_is_settled_by_reading(opener: Opener, kind: type[ClaimWrite], done: bool) -> None:
    async def scenario(world: PortWorld) -> None:
        effect = await ask(world)
        lose(world, kind, done=done)
        world.performer.perform([effect])
        [told] = await world.answers()
        assert isinstance(told, ClaimsBound)
        assert (given(world), users(world)) == (["g"], ["web"])
        version = world.resource_claim()["metadata"]["resourceVersion"]
        assert [one.metadata.resource_version for one in told.claims] == [version]

    play(opener, scenario)


@in_both_worlds
@pytest.mark.parametrize("late", [False, True], ids=["at once", "just before the next try"])
def test_what_was_written_is_found_also_after_the_last_try(opener: Opener, late: bool) -> None:
    async def scenario(world: PortWorld) -> None:
        effect = await ask(world)
        write: Callable[[ClaimWrite], Awaitable[ClaimOutcome]] = world.port.write_resource_claim
        asked: list[ClaimWrite] = []

        async def write_and_lose(one: ClaimWrite) -> ClaimOutcome:
            if not isinstance(one, AllocateClaim):
                return await write(one)
            asked.append(one)
            if len(asked) == claims.TRIES:
                outcome = await write(asked[-2] if late else one)
                assert not outcome.problem
                if late:
                    return await write(one)
            return ClaimOutcome("the connection broke", retry=True, lost=True)

        world.port.write_resource_claim = write_and_lose
        world.performer.perform([effect])
        [told] = await world.answers()
        assert isinstance(told, ClaimsBound)
        assert len(asked) == claims.TRIES
        assert (given(world), users(world)) == (["g"], ["web"])
        version = world.resource_claim()["metadata"]["resourceVersion"]
        assert [one.metadata.resource_version for one in told.claims] == [version]

    play(opener, scenario)


@in_both_worlds
def test_a_pod_whose_claim_never_took_a_write_fails_with_the_last_problem(opener: Opener) -> None:
    async def scenario(world: PortWorld) -> None:
        effect = await ask(world)
        lose(world, AllocateClaim, 100, done=False)
        world.performer.perform([effect])
        [told] = await world.answers()
        assert problem(told) == "add allocation and reservation to claim default/gpu: the connection broke"
        assert given(world) == []

    play(opener, scenario)


@in_both_worlds
def test_the_devices_of_a_claim_that_is_deleted_just_after_they_were_written_are_told(opener: Opener) -> None:
    """Its finalizer keeps it, and so its devices, until they are taken back."""

    async def scenario(world: PortWorld) -> None:
        effect = await ask(world)
        lose(world, AllocateClaim, done=True)
        read = world.port.read_resource_claim

        async def delete_and_read(namespace: str, name: str) -> Any:
            ends = {"deletionTimestamp": "2026-01-01T00:00:00Z"}
            await world.change("ResourceClaim", "gpu", lambda claim: claim["metadata"].update(ends))
            return await read(namespace, name)

        world.port.read_resource_claim = delete_and_read
        world.performer.perform([effect])
        [told] = await world.answers()
        assert problem(told) == "claim default/gpu got deleted in the meantime"
        assert isinstance(told, ClaimsFailed)
        assert [one.status.allocation is not None for one in told.claims] == [True]

    play(opener, scenario)


@in_both_worlds
def test_no_answer_before_it_is_known_whether_the_devices_were_written(opener: Opener) -> None:
    """Even if the server cannot be read for a while: else the engine would give the devices to another claim."""

    async def scenario(world: PortWorld) -> None:
        effect = await ask(world)
        lose(world, AllocateClaim, done=True)
        read, tries = world.port.read_resource_claim, []

        async def unreachable(namespace: str, name: str) -> Any:
            tries.append(name)
            if len(tries) < 20:
                assert not world.told
                raise ClaimError("the server cannot be reached")
            return await read(namespace, name)

        world.port.read_resource_claim = unreachable
        world.performer.perform([effect])
        [told] = await world.answers()
        assert isinstance(told, ClaimsBound)
        assert len(tries) == 20

    play(opener, scenario)


@in_both_worlds
def test_the_claims_that_were_written_before_a_failure_are_told(opener: Opener) -> None:
    async def scenario(world: PortWorld) -> None:
        first = await world.add_resource_claim("first")
        second = await world.add_resource_claim("second")
        ref = await world.add_pod()
        await world.remove("ResourceClaim", "second")
        wanted = (ClaimToBind("first", first, allocation("a")), ClaimToBind("second", second, allocation("b")))
        world.performer.perform([BindClaims(ref, "n1", 1, wanted)])
        [told] = await world.answers()
        assert isinstance(told, ClaimsFailed)
        shown = {one.metadata.name: one.status.allocation is not None for one in told.claims}
        assert shown["first"]
        assert not shown.get("second")
        world.performer.perform([UnreserveClaims(ref, ("first", "second"))])
        await world.quiet()
        assert (given(world, "first"), users(world, "first")) == (["a"], [])

    play(opener, scenario)


@in_both_worlds
@pytest.mark.parametrize("why", [NOT_LEADER, STOPPING])
def test_who_may_not_write_writes_nothing(opener: Opener, why: str) -> None:
    async def scenario(world: PortWorld) -> None:
        effect = await ask(world)
        before = world.writes
        if why == NOT_LEADER:
            world.leads = False
        else:
            assert await world.performer.drain(1)
        uid = effect.claims[0].uid
        world.performer.perform([effect, UnreserveClaims(effect.pod, ("gpu",)), ReleaseClaim(effect.pod, "gpu", uid)])
        [told] = await world.answers()
        assert problem(told) == why
        assert world.writes == before

    play(opener, scenario)


@in_both_worlds
def test_the_same_attempt_is_carried_out_once(opener: Opener) -> None:
    async def scenario(world: PortWorld) -> None:
        effect = await ask(world)
        world.performer.perform([effect, effect])
        assert len(await world.answers()) == 1

    play(opener, scenario)


@in_both_worlds
def test_devices_that_are_being_written_hold_up_decisions_and_devices_that_are_waited_for_do_not(
    opener: Opener,
) -> None:
    async def scenario(world: PortWorld) -> None:
        effect = await ask(world, allocation(**CONDITIONS))
        assert world.performer.binds_waiting == 0
        world.performer.perform([effect])
        assert world.performer.binds_waiting == 1
        await world.quiet()
        assert not world.told
        assert world.performer.binds_waiting == 0

    play(opener, scenario)


@in_both_worlds
def test_a_fault_of_ours_is_answered(opener: Opener) -> None:
    async def broken(*_: object) -> None:
        raise LookupError("a fault")

    async def scenario(world: PortWorld) -> None:
        effect = await ask(world)
        world.port.write_resource_claim = broken
        world.performer.perform([effect])
        [told] = await world.answers()
        assert "a fault" in problem(told)

    play(opener, scenario)


@in_both_worlds
def test_what_is_cut_off_is_answered(opener: Opener) -> None:
    async def hang(*_: object) -> None:
        await asyncio.Event().wait()

    async def scenario(world: PortWorld) -> None:
        effect = await ask(world)
        world.port.write_resource_claim = hang
        world.performer.perform([effect])
        await asyncio.sleep(0)
        assert not await world.performer.drain(0.01)
        [told] = world.told
        assert problem(told) == STOPPING

    play(opener, scenario)


# -- giving back -------------------------------------------------------------------------------------------------------


@in_both_worlds
def test_a_pod_that_is_not_bound_leaves_its_claims_with_their_devices_and_other_users(opener: Opener) -> None:
    async def scenario(world: PortWorld) -> None:
        effect = await ask(world)
        world.performer.perform([effect])
        await world.answers()
        more = [user("web", effect.pod.uid), user("other", "uid-o")]
        await world.change("ResourceClaim", "gpu", lambda claim: claim["status"].update(reservedFor=more))
        world.performer.perform([UnreserveClaims(effect.pod, ("gpu",))])
        await world.quiet()
        assert (given(world), users(world)) == (["g"], ["other"])

    play(opener, scenario)


@in_both_worlds
def test_a_claim_that_cannot_be_given_back_keeps_no_other_from_it(opener: Opener) -> None:
    async def scenario(world: PortWorld) -> None:
        ref = await world.add_pod()
        names = ("gpu", "second")
        uids = [await world.add_resource_claim(name) for name in names]
        effect = BindClaims(
            ref, "n1", 1, tuple(ClaimToBind(n, uid, allocation(n)) for n, uid in zip(names, uids, strict=True))
        )
        world.performer.perform([effect])
        await world.answers()
        assert users(world, "second") == ["web"]
        lose(world, UnreserveClaim, claims.TRIES, done=False)
        world.performer.perform([UnreserveClaims(ref, names)])
        await world.quiet()
        assert (users(world), users(world, "second")) == (["web"], [])

    play(opener, scenario)


@in_both_worlds
def test_a_pod_that_is_given_up_while_its_claims_are_written_leaves_no_reservation(opener: Opener) -> None:
    async def scenario(world: PortWorld) -> None:
        effect = await ask(world)

        async def give_up(world: PortWorld) -> None:
            world.performer.perform([UnreserveClaims(effect.pod, ("gpu",))])

        interfere(world, AllocateClaim, give_up)
        world.performer.perform([effect])
        [told] = await world.answers()
        assert users(world) == []
        assert problem(told) == OVERTAKEN
        assert isinstance(told, ClaimsFailed)
        assert [one.status.allocation is not None for one in told.claims] == [True], "its devices are taken"

    play(opener, scenario)


@in_both_worlds
def test_devices_are_taken_back_from_a_claim_that_no_other_pod_uses(opener: Opener) -> None:
    async def scenario(world: PortWorld) -> None:
        effect = await ask(world)
        world.performer.perform([effect])
        await world.answers()
        world.performer.perform([ReleaseClaim(effect.pod, "gpu", effect.claims[0].uid)])
        await world.quiet()
        assert "allocation" not in world.resource_claim()["status"]
        assert "reservedFor" not in world.resource_claim()["status"]

    play(opener, scenario)


@in_both_worlds
@pytest.mark.parametrize("other", ["another user", "another claim of its name"])
def test_devices_that_others_use_are_not_taken_back(opener: Opener, other: str) -> None:
    async def scenario(world: PortWorld) -> None:
        effect = await ask(world)
        world.performer.perform([effect])
        await world.answers()
        uid = effect.claims[0].uid
        if other == "another user":
            more = [user("web", effect.pod.uid), user("other", "uid-o")]
            await world.change("ResourceClaim", "gpu", lambda claim: claim["status"].update(reservedFor=more))
        else:
            uid = "an older one"
        world.performer.perform([ReleaseClaim(effect.pod, "gpu", uid)])
        await world.quiet()
        assert given(world) == ["g"]

    play(opener, scenario)


SETTLED_S = 0.2


async def left_by_another(world: PortWorld, how: str = "release") -> tuple[PodRef, ReleaseClaim]:
    """The scheduler before us gave a pod devices; we have just started, and take them back, or the reservation."""
    world.performer = world.new_performer(devices_settled_s=SETTLED_S)
    ref, uid = await world.add_pod(), await world.add_resource_claim()
    status = {"allocation": written(), "reservedFor": [user("web", ref.uid)]}
    await world.change("ResourceClaim", "gpu", lambda claim: claim.update(status=status))
    world.show()
    release = ReleaseClaim(ref, "gpu", uid)
    world.performer.perform([release if how == "release" else UnreserveClaims(ref, ("gpu",))])
    await asyncio.sleep(0.01)
    await world.quiet()
    assert (given(world), users(world)) == (["g"], ["web"]), "a bind of the other one may still arrive"
    return ref, release


@in_both_worlds
@pytest.mark.parametrize("binds", [False, True], ids=["lost", "late"])
@pytest.mark.parametrize("how", ["release", "unreserve"])
def test_nothing_is_taken_back_before_a_bind_of_the_scheduler_before_us_has_arrived(
    opener: Opener, how: str, binds: bool
) -> None:
    async def scenario(world: PortWorld) -> None:
        await left_by_another(world, how)
        if binds:
            await bind_unseen(world)
        await asyncio.sleep(SETTLED_S)
        await world.quiet()
        assert given(world) == (["g"] if binds or how == "unreserve" else [])
        assert users(world) == (["web"] if binds else [])

    play(opener, scenario)


@in_both_worlds
def test_what_is_not_taken_back_yet_stays_with_a_pod_that_can_use_it_after_all(opener: Opener) -> None:
    async def scenario(world: PortWorld) -> None:
        ref, release = await left_by_another(world)
        world.performer.perform([BindClaims(ref, "n1", 2, (ClaimToBind("gpu", release.uid),))])
        [told] = await world.answers()
        assert isinstance(told, ClaimsBound), "the engine binds the pod now"
        await asyncio.sleep(SETTLED_S)
        await world.quiet()
        assert (given(world), users(world)) == (["g"], ["web"])

    play(opener, scenario)


# -- extended resources ------------------------------------------------------------------------------------------------

REQUESTS = convert(
    [
        {
            "name": "container-0-request-0",
            "exactly": {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1},
        }
    ],
    tuple[DeviceRequest, ...],
)
MAPPED = (ExtendedResource("c", "example.com/gpu", "container-0-request-0"),)


async def extended(world: PortWorld) -> BindClaims:
    ref = await world.add_pod()
    one = allocation(request="container-0-request-0")
    return BindClaims(ref, "n1", 1, (), ClaimToCreate(REQUESTS, one, MAPPED))


@in_both_worlds
def test_a_claim_is_created_for_extended_resources_and_named_in_the_pod(opener: Opener) -> None:
    async def scenario(world: PortWorld) -> None:
        effect = await extended(world)
        world.performer.perform([effect])
        [told] = await world.answers()
        assert isinstance(told, ClaimsBound)
        [claim] = world.all("ResourceClaim")
        meta = claim["metadata"]
        assert meta["name"].startswith("web-extended-resources-")
        assert meta["generateName"] == "web-extended-resources-"
        assert meta["annotations"] == {"resource.kubernetes.io/extended-resource-claim": "true"}
        [owner] = meta["ownerReferences"]
        assert (owner["kind"], owner["uid"], owner["controller"]) == ("Pod", effect.pod.uid, True)
        assert meta["finalizers"] == [FINALIZER]
        assert (given(world, meta["name"]), users(world, meta["name"])) == (["g"], ["web"])
        assert world.pod()["status"]["extendedResourceClaimStatus"] == {
            "resourceClaimName": meta["name"],
            "requestMappings": [
                {"containerName": "c", "resourceName": "example.com/gpu", "requestName": "container-0-request-0"}
            ],
        }
        assert [one.metadata.name for one in told.claims] == [meta["name"]]

    play(opener, scenario)


@in_both_worlds
def test_a_pod_that_another_scheduler_bound_keeps_the_claim_that_it_names(opener: Opener) -> None:
    theirs = {"resourceClaimName": "theirs", "requestMappings": []}

    async def bind(world: PortWorld) -> None:
        def bound(pod: Object) -> None:
            pod["spec"]["nodeName"] = "n2"
            pod.setdefault("status", {})["extendedResourceClaimStatus"] = theirs

        await world.change("Pod", "web", bound)

    async def scenario(world: PortWorld) -> None:
        effect = await extended(world)
        interfere(world, ExtendedStatus, bind)
        world.performer.perform([effect])
        [told] = await world.answers()
        assert "is already assigned" in problem(told)
        assert world.pod()["status"]["extendedResourceClaimStatus"] == theirs
        world.performer.perform([UnreserveClaims(effect.pod, ("",))])
        await world.quiet()
        assert world.all("ResourceClaim") == []
        assert world.pod()["status"]["extendedResourceClaimStatus"] == theirs

    play(opener, scenario)


@in_both_worlds
@pytest.mark.parametrize("done", [True, False])
def test_a_claim_whose_creation_is_not_answered_is_found_again(opener: Opener, done: bool) -> None:
    async def scenario(world: PortWorld) -> None:
        effect = await extended(world)
        lose(world, CreateClaim, done=done)
        world.performer.perform([effect])
        [told] = await world.answers()
        assert isinstance(told, ClaimsBound)
        assert len(world.all("ResourceClaim")) == 1

    play(opener, scenario)


@in_both_worlds
@pytest.mark.parametrize("fails", [AllocateClaim, CreateClaim, None])
def test_the_created_claim_goes_if_the_pod_is_not_bound(opener: Opener, fails: type[ClaimWrite] | None) -> None:
    async def scenario(world: PortWorld) -> None:
        effect = await extended(world)
        if fails is not None:
            lose(world, fails, times=100, done=fails is CreateClaim)
        world.performer.perform([effect])
        [told] = await world.answers()
        assert isinstance(told, ClaimsBound) == (fails is not AllocateClaim)
        assert len(world.all("ResourceClaim")) == 1
        world.performer.perform([UnreserveClaims(effect.pod, ("",))])
        await world.quiet()
        assert world.all("ResourceClaim") == []

    play(opener, scenario)


@in_both_worlds
@pytest.mark.parametrize("again", [False, True])
def test_just_after_a_start_the_created_claim_goes_a_little_later(opener: Opener, again: bool) -> None:
    """`again`: meanwhile the pod is decided again, and gets another claim."""

    async def scenario(world: PortWorld) -> None:
        world.performer = world.new_performer(devices_settled_s=SETTLED_S)
        effect = await extended(world)
        world.performer.perform([effect])
        await world.answers()
        [first] = [one["metadata"]["name"] for one in world.all("ResourceClaim")]
        world.performer.perform([UnreserveClaims(effect.pod, ("",))])
        await asyncio.sleep(0.01)
        await world.quiet()
        assert [one["metadata"]["name"] for one in world.all("ResourceClaim")] == [first]
        if again:
            world.performer.perform([replace(effect, attempt=effect.attempt + 1)])
            await world.answers()
        await asyncio.sleep(SETTLED_S)
        await world.quiet()
        left = [one["metadata"]["name"] for one in world.all("ResourceClaim")]
        assert (len(left), first in left) == (int(again), False)

    play(opener, scenario)


@in_both_worlds
def test_a_claim_for_extended_resources_that_was_left_over_is_deleted(opener: Opener) -> None:
    async def scenario(world: PortWorld) -> None:
        ref = await world.add_pod()
        owner = {"apiVersion": "v1", "kind": "Pod", "name": "web", "uid": ref.uid, "controller": True}
        uid = await world.add_resource_claim("left", ownerReferences=[owner], finalizers=[FINALIZER])
        world.performer.perform([ReleaseClaim(ref, "left", uid, delete=True)])
        await world.quiet()
        assert world.all("ResourceClaim") == []

    play(opener, scenario)


async def bind_unseen(world: PortWorld, **status: Any) -> None:
    """Another scheduler, or the one before us, bound the pod, and the engine does not know it yet."""

    def bound(pod: Object) -> None:
        pod["spec"]["nodeName"] = "n2"
        pod.setdefault("status", {}).update(status)

    await world.change("Pod", "web", bound)


@in_both_worlds
@pytest.mark.parametrize("give_back", ["unreserve", "release"])
def test_a_pod_that_was_bound_unseen_keeps_its_claims(opener: Opener, give_back: str) -> None:
    async def scenario(world: PortWorld) -> None:
        effect = await ask(world)
        world.performer.perform([effect])
        await world.answers()
        await bind_unseen(world)
        uid = effect.claims[0].uid
        unreserve, release = UnreserveClaims(effect.pod, ("gpu",)), ReleaseClaim(effect.pod, "gpu", uid)
        world.performer.perform([unreserve if give_back == "unreserve" else release])
        await world.quiet()
        assert (given(world), users(world)) == (["g"], ["web"])

    play(opener, scenario)


@in_both_worlds
def test_a_pod_that_was_bound_unseen_keeps_the_claim_for_its_extended_resources_and_no_other(opener: Opener) -> None:
    async def scenario(world: PortWorld) -> None:
        ref = await world.add_pod()
        owner = {"apiVersion": "v1", "kind": "Pod", "name": "web", "uid": ref.uid, "controller": True}
        more: Object = {
            "ownerReferences": [owner],
            "finalizers": [FINALIZER],
            "annotations": {"resource.kubernetes.io/extended-resource-claim": "true"},
        }
        uids = {name: await world.add_resource_claim(name, **more) for name in ("its", "other")}
        await bind_unseen(world, extendedResourceClaimStatus={"resourceClaimName": "its", "requestMappings": []})
        world.performer.perform([ReleaseClaim(ref, name, uid, delete=True) for name, uid in uids.items()])
        await world.quiet()
        assert [one["metadata"]["name"] for one in world.all("ResourceClaim")] == ["its"]

    play(opener, scenario)


@in_both_worlds
def test_a_pod_that_no_device_of_the_node_serves_fails_as_in_kubernetes(opener: Opener) -> None:
    async def scenario(world: PortWorld) -> None:
        ref = await world.add_pod()
        world.performer.perform([BindClaims(ref, "n1", 1, (), ClaimToCreate((), allocation(), ()))])
        [told] = await world.answers()
        expected = "nil or empty request mappings, no update of pod default/web ExtendedResourceClaimStatus"
        assert problem(told) == expected

    play(opener, scenario)


# -- binding conditions ------------------------------------------------------------------------------------------------

CONDITIONS: dict[str, Any] = {"bindingConditions": ["Attached"], "bindingFailureConditions": ["Broken"]}


async def prepare(world: PortWorld, kind: str, **more: str) -> None:
    """What a driver reports."""
    condition = {"type": kind, "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z", **more}
    one = {"driver": DRIVER, "pool": "n1", "device": "g", "conditions": [condition]}
    await world.change("ResourceClaim", "gpu", lambda claim: claim["status"].update(devices=[one]))
    world.show()


async def waiting(world: PortWorld) -> BindClaims:
    effect = await ask(world, allocation(**CONDITIONS))
    world.performer.perform([effect])
    await world.quiet()
    world.show()
    assert not world.told
    return effect


@in_both_worlds
def test_devices_with_binding_conditions_are_waited_for(opener: Opener) -> None:
    async def scenario(world: PortWorld) -> None:
        effect = await waiting(world)
        await world.until(world.events)
        [event] = world.events()
        assert (event.reason, event.about) == ("BindingConditionsPending", "web")
        assert event.note == "waiting for binding conditions for device on node n1"
        assert world.pod().get("status", {}).get("nominatedNodeName", "") == (
            "n1" if world.port.nominates_reserved else ""
        )
        await prepare(world, "Attached")
        [told] = await world.answers()
        assert isinstance(told, ClaimsBound)
        assert told.pod == effect.pod

    play(opener, scenario)


@in_both_worlds
def test_a_device_that_reports_a_failure_fails_the_pod(opener: Opener) -> None:
    async def scenario(world: PortWorld) -> None:
        await waiting(world)
        await prepare(world, "Broken", reason="NoLink", message='the "link" is down')
        [told] = await world.answers()
        expected = 'device binding failed: claim=gpu, reason=NoLink, message="the \\"link\\" is down"'
        assert problem(told) == expected
        assert given(world) == ["g"], "the engine takes them back"

    play(opener, scenario)


@in_both_worlds
def test_devices_that_are_not_ready_in_time_are_taken_back(opener: Opener) -> None:
    async def scenario(world: PortWorld) -> None:
        world.performer = world.new_performer(device_timeouts_s={"default-scheduler": 2.0})
        await waiting(world)
        world.now_ns += 3_000_000_000
        world.told.clear()
        world.performer = world.new_performer(device_timeouts_s={"default-scheduler": 2.0})
        uid = world.resource_claim()["metadata"]["uid"]
        ref = PodRef("default", "web", world.pod()["metadata"]["uid"])
        world.performer.perform([BindClaims(ref, "n1", 2, (ClaimToBind("gpu", uid),))])
        [told] = await world.answers()
        assert problem(told) == "device binding timeout: claim=gpu"
        world.performer.perform([UnreserveClaims(ref, ("gpu",))])
        await world.quiet()
        assert (given(world), users(world)) == ([], [])

    play(opener, scenario)


@in_both_worlds
def test_a_claim_that_is_deleted_while_its_devices_are_waited_for_fails_the_pod(opener: Opener) -> None:
    async def scenario(world: PortWorld) -> None:
        await waiting(world)
        await world.remove("ResourceClaim", "gpu")
        world.show()
        [told] = await world.answers()
        assert problem(told) == "claim default/gpu got deleted in the meantime"

    play(opener, scenario)


# -- what only one world can show --------------------------------------------------------------------------------------


def test_a_device_that_another_claim_has_is_refused_by_our_own_server() -> None:
    async def scenario(world: PortWorld) -> None:
        effect = await ask(world)
        world.performer.perform([effect])
        await world.answers()
        uid = await world.add_resource_claim("second")
        ref = await world.add_pod("late")
        world.performer.perform([BindClaims(ref, "n1", 1, (ClaimToBind("second", uid, allocation()),))])
        told = (await world.answers(2))[1]
        assert "is allocated to claim default/gpu" in problem(told)
        assert given(world, "second") == []

    play(WORLDS[1], scenario)


def test_patches_name_the_version_and_the_uid_that_they_are_for() -> None:
    async def scenario(world: PortWorld) -> None:
        assert isinstance(world, KubeWorld)
        effect = await ask(world)
        version = int(world.resource_claim()["metadata"]["resourceVersion"])
        world.performer.perform([effect])
        await world.answers()
        protect, allocate = world.server.asked("PATCH", "resourceclaims")
        assert [one.path.rpartition("/")[2] for one in (protect, allocate)] == ["gpu", "status"]
        assert int(protect.body["metadata"]["resourceVersion"]) == version
        assert int(allocate.body["metadata"]["resourceVersion"]) > version
        assert {one.body["metadata"]["uid"] for one in (protect, allocate)} == {effect.claims[0].uid}
        assert not world.server.asked("GET", "resourceclaims"), "the version that the engine knows is tried first"

    play(WORLDS[0], scenario)
