"""A revoked certificate is refused from the next request on: on this server, and a second later on all of the store."""

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from server.identity.memory import Memory
from situate.server.errors import StatusError, conflict
from situate.server.identity import secret_files
from situate.server.identity.pki import revocation
from situate.server.identity.pki.certificates import CLOCKS_DIFFER
from situate.server.identity.pki.revocation import (
    CONFIG_MAPS,
    FOREVER,
    NAME,
    NAMESPACE,
    RevocationList,
    Revocations,
    parse,
    read_revoked,
    revoke,
    share,
    share_always,
)
from situate.server.identity.secret_files import IdentityError

NOW = datetime(2026, 11, 16, 12, tzinfo=UTC)
DAY = timedelta(days=1)


def test_a_list_can_be_read_back_from_its_text() -> None:
    made = RevocationList({255: NOW, 1: NOW + DAY}, {"system:node:n1": NOW, "two words": NOW})
    assert parse(made.text()) == made


def test_a_list_of_an_older_release_is_read() -> None:
    assert parse("ff\n1a\n") == RevocationList({255: FOREVER, 26: FOREVER})
    assert parse(parse("ff\n").text()) == parse("ff\n")


def test_a_time_without_a_zone_is_utc() -> None:
    assert parse("user jane 2026-11-16T12:00:00\n") == parse("user jane 2026-11-16T12:00:00Z\n")
    assert parse("user jane 2026-11-16T13:00:00+01:00\n") == RevocationList({}, {"jane": NOW})


def test_certificates_of_a_user_are_revoked_up_to_a_time() -> None:
    made = RevocationList({}, {"jane": NOW})
    assert made.has(1, "jane", NOW - CLOCKS_DIFFER)
    assert not made.has(1, "jane", NOW - CLOCKS_DIFFER + timedelta(seconds=1))
    assert not made.has(1, "john", NOW - DAY)


def test_the_later_time_counts_for_a_user() -> None:
    first, second = RevocationList({}, {"jane": NOW}), RevocationList({}, {"jane": NOW + DAY})
    assert (first | second) == (second | first) == second


def test_what_has_expired_anyway_is_dropped(tmp_path: Path) -> None:
    path = tmp_path / "revoked"
    revoke(path, RevocationList({1: NOW + DAY}), NOW)
    revoke(path, RevocationList({2: NOW + 3 * DAY}), NOW + 2 * DAY)
    assert read_revoked(path) == RevocationList({2: NOW + 3 * DAY})


def test_a_damaged_file_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "revoked"
    path.write_text("zzz\n")
    path.chmod(0o600)
    with pytest.raises(IdentityError, match="revoked is damaged"):
        Revocations(path, Memory())


def test_the_list_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(revocation, "MAX_REVOKED", 2)
    path = tmp_path / "revoked"
    revoke(path, RevocationList({1: NOW + DAY, 2: NOW + DAY}), NOW)
    with pytest.raises(IdentityError, match="2 revocations already"):
        revoke(path, RevocationList({3: NOW + DAY}), NOW)


def test_another_server_of_the_store_learns_of_it(tmp_path: Path) -> None:
    store = Memory()
    there = Revocations(tmp_path / "other", store)
    assert there() == RevocationList()
    for serial in (1, 2):
        revoke(tmp_path / "revoked", RevocationList({serial: NOW + DAY}), NOW)
        assert asyncio.run(share(store, tmp_path / "revoked", NOW))
        assert serial in there().serials
    assert not asyncio.run(share(store, tmp_path / "revoked", NOW))


def test_what_another_server_has_revoked_stays_in_the_store(tmp_path: Path) -> None:
    store = Memory()
    for name, serial in (("a", 1), ("b", 2)):
        revoke(tmp_path / name, RevocationList({serial: NOW + DAY}), NOW)
        asyncio.run(share(store, tmp_path / name, NOW))
    assert set(Revocations(tmp_path / "c", store)().serials) == {1, 2}


def test_nothing_is_forgotten_when_somebody_deletes_the_shared_list(tmp_path: Path) -> None:
    store = Memory()
    revoke(tmp_path / "a", RevocationList({1: NOW + DAY}), NOW)
    asyncio.run(share(store, tmp_path / "a", NOW))
    there = Revocations(tmp_path / "b", store)
    assert 1 in there().serials
    store.remove(CONFIG_MAPS, NAMESPACE, NAME)
    assert 1 in there().serials


def test_a_server_shares_what_is_revoked_while_it_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(revocation, "SHARE_S", 0.01)
    store, path, end = Memory(), tmp_path / "revoked", datetime.now(UTC) + DAY

    async def story() -> None:
        sharing = asyncio.create_task(share_always(store, path))
        for serial in (1, 2):
            revoke(path, RevocationList({serial: end}), NOW)
            async with asyncio.timeout(10):
                while serial not in Revocations(tmp_path / "other", store)().serials:
                    await asyncio.sleep(0.01)
        path.write_text("zzz\n")  # damaged: told, and sharing goes on
        await asyncio.sleep(0.05)
        path.unlink()
        revoke(path, RevocationList({3: end}), NOW)
        async with asyncio.timeout(10):
            while 3 not in Revocations(tmp_path / "other", store)().serials:
                await asyncio.sleep(0.01)
        assert not sharing.done()
        sharing.cancel()

    asyncio.run(story())


def test_a_certificate_is_dropped_from_the_list_when_it_expires(tmp_path: Path) -> None:
    made = RevocationList({1: NOW, 2: NOW + timedelta(seconds=1)}, {"jane": NOW - DAY})
    assert made.current(NOW) == RevocationList({2: NOW + timedelta(seconds=1)}, {"jane": NOW - DAY})


@pytest.mark.parametrize("line", ["serial 1", "user jane", "user 2026-11-16T12:00:00Z", "a b c d", "serial zz x"])
def test_what_is_no_revocation_is_refused(line: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        parse(f"{line}\n")


def test_users_count_against_the_limit_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(revocation, "MAX_REVOKED", 2)
    path = tmp_path / "revoked"
    revoke(path, RevocationList({1: NOW + DAY}, {"jane": NOW}), NOW)
    with pytest.raises(IdentityError, match="2 revocations already"):
        revoke(path, RevocationList({}, {"john": NOW}), NOW)
    revoke(path, RevocationList({}, {"jane": NOW + DAY}), NOW)


def test_a_server_looks_for_revocations_when_the_interval_has_passed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, store = [100.0], Memory()
    monkeypatch.setattr(revocation, "monotonic", lambda: now[0])
    monkeypatch.setattr(secret_files, "STAT_INTERVAL_S", 0.5)
    known = Revocations(tmp_path / "none", store)
    assert known() == RevocationList()
    revoke(tmp_path / "revoked", RevocationList({1: NOW + DAY}), NOW)
    asyncio.run(share(store, tmp_path / "revoked", NOW))
    now[0] = 100.25
    assert known() == RevocationList()
    now[0] = 100.5
    assert 1 in known().serials


def test_a_shared_list_that_is_damaged_is_no_list(tmp_path: Path) -> None:
    store = Memory()
    metadata = {"name": NAME, "namespace": NAMESPACE}
    for data in (None, {}, {"revoked": "zzz zzz"}, {"revoked": 7}):
        store.put({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})
        assert Revocations(tmp_path / "revoked", store)() == RevocationList()


@pytest.mark.parametrize(
    "error, again",
    [
        (None, False),
        (IdentityError("damaged"), False),
        (conflict("configmaps", "", NAME), True),
        (StatusError(500, "InternalError", "x"), True),
    ],
    ids=["shared", "damaged", "conflict", "failed"],
)
def test_sharing_is_tried_again_only_if_that_can_help(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception | None, again: bool
) -> None:
    calls = []

    async def share_once(*_: object) -> bool:
        calls.append(1)
        if error is not None:
            raise error
        return True

    monkeypatch.setattr(revocation, "share", share_once)
    monkeypatch.setattr(revocation, "SHARE_S", 0.0)

    async def story() -> None:
        sharing = asyncio.create_task(share_always(Memory(), tmp_path / "revoked"))
        for _ in range(10):
            await asyncio.sleep(0)
        assert not sharing.done()
        sharing.cancel()

    asyncio.run(story())
    assert (len(calls) > 1) is again
    assert calls
