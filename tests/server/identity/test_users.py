"""What a local administrator does for people, on the directory of a cluster."""

import fcntl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization

from server.identity.memory import Memory
from server.identity.user_tokens import add_token
from situate.server.errors import StatusError
from situate.server.identity import users
from situate.server.identity.authentication import Authentication
from situate.server.identity.secret_files import IdentityError
from situate.server.identity.setup import open_identity
from situate.server.identity.tokens.token_files import hash_of
from situate.server.identity.users import UserDirectory

NOW = datetime.now(UTC)
DAY = timedelta(days=1)


@pytest.fixture
def server(tmp_path: Path) -> Authentication:
    parts = open_identity(
        tmp_path / "d", Memory(), clock=lambda: datetime.now(UTC), wall_ns=lambda: 0, new_uid=lambda: ""
    )
    return parts.identity.authentication


@pytest.fixture
def people(server: Authentication, tmp_path: Path) -> UserDirectory:
    return UserDirectory(tmp_path / "d")


def der(pem: bytes) -> bytes:
    return x509.load_pem_x509_certificate(pem).public_bytes(serialization.Encoding.DER)


def test_a_user_has_access_with_its_groups_until_removed(people: UserDirectory, server: Authentication) -> None:
    made = der(people.add_certificate("jane", ["dev"], 30 * DAY, NOW).certificate)
    found = server.authenticate(made, "")
    assert (found.name, found.groups) == ("jane", ("dev", "system:authenticated"))
    (listed,) = people.credentials()
    assert (listed.user, listed.groups, listed.kind, listed.revoked) == ("jane", ("dev",), "certificate", False)
    assert listed.expires is not None
    assert abs(listed.expires - NOW - 30 * DAY) < timedelta(seconds=2)
    assert people.remove("jane", NOW) == 1
    with pytest.raises(StatusError, match="Unauthorized"):
        server.authenticate(made, "")
    assert [one.revoked for one in people.credentials()] == [True]
    assert people.remove("jane", NOW) == 0


def test_a_removed_user_can_come_back(people: UserDirectory, server: Authentication) -> None:
    first = der(people.add_certificate("jane", [], DAY, NOW).certificate)
    people.remove("jane", NOW)
    second = der(people.add_certificate("jane", [], DAY, NOW).certificate)
    assert server.authenticate(second, "").name == "jane"
    with pytest.raises(StatusError):
        server.authenticate(first, "")


def test_a_token_is_valid_until_it_alone_is_revoked(people: UserDirectory, server: Authentication) -> None:
    first, second = (people.add_token("jane", ["dev"], DAY, NOW) for _ in range(2))
    assert server.authenticate(None, f"Bearer {first}").groups == ("dev", "system:authenticated")
    assert {one.expires for one in people.credentials()} == {(NOW + DAY).replace(microsecond=0)}
    ids = [one.id for one in people.credentials()]
    assert people.revoke_token(ids[0]) == "jane"
    answers = []
    for one in (first, second):
        try:
            answers.append(server.authenticate(None, f"Bearer {one}").name)
        except StatusError:
            answers.append("")
    assert sorted(answers) == ["", "jane"]
    assert people.remove("jane", NOW) == 1
    assert people.credentials() == []


def test_no_file_has_a_secret(people: UserDirectory, tmp_path: Path) -> None:
    token = people.add_token("jane", [], DAY, NOW)
    key = people.add_certificate("jane", [], DAY, NOW).key.decode()
    for path in (tmp_path / "d").rglob("*"):
        if path.is_file():
            assert token not in path.read_text()
            assert key.splitlines()[1] not in path.read_text()
            assert path.name == "ca.crt" or path.stat().st_mode & 0o077 == 0


def test_a_node_is_revoked_with_all_its_certificates(people: UserDirectory, server: Authentication) -> None:
    people.revoke_all_before("jane", NOW + timedelta(seconds=5))
    made = der(people.add_certificate("jane", [], DAY, NOW).certificate)
    with pytest.raises(StatusError, match="Unauthorized"):
        server.authenticate(made, "")


@pytest.mark.parametrize("name", ["", "system:admin", "a" * 65, " a", "a\nb"])
def test_an_invalid_name_is_refused(people: UserDirectory, name: str) -> None:
    with pytest.raises(IdentityError):
        people.add_certificate(name, [], DAY, NOW)
    with pytest.raises(IdentityError):
        people.add_token(name, [], DAY, NOW)
    assert people.credentials() == []


def test_without_a_cluster_there_are_no_users(tmp_path: Path) -> None:
    with pytest.raises(IdentityError, match="there is no cluster in"):
        UserDirectory(tmp_path)


def test_a_damaged_list_is_reported_and_left_alone(people: UserDirectory, tmp_path: Path) -> None:
    path = tmp_path / "d" / "users.json"
    path.write_text("[{")
    path.chmod(0o600)
    with pytest.raises(IdentityError, match=r"users\.json is damaged"):
        people.add_certificate("jane", [], DAY, NOW)
    assert path.read_text() == "[{"


@pytest.mark.parametrize("name", ["", "a" * 65, "a ", "a\tb"])
def test_an_invalid_group_is_refused(people: UserDirectory, name: str) -> None:
    with pytest.raises(IdentityError, match="is not the name of a group: 1 to 64 printable characters"):
        people.add_certificate("jane", ["dev", name], DAY, NOW)


def test_names_may_have_64_characters_and_groups_may_be_the_clusters(people: UserDirectory) -> None:
    people.add_token("a" * 64, ["b" * 64, "system:masters"], DAY, NOW)
    (listed,) = people.credentials()
    assert (listed.user, listed.groups) == ("a" * 64, ("b" * 64, "system:masters"))


def test_what_has_expired_is_dropped_when_something_is_added(people: UserDirectory) -> None:
    people.add_certificate("jane", [], DAY, NOW)
    people.add_token("jane", [], DAY, NOW)
    ends = [one.expires for one in people.credentials() if one.expires is not None]
    later = max(ends)
    assert len(ends) == 2
    people.add_certificate("john", [], DAY, later)
    people.add_token("john", [], DAY, later)
    assert [(one.user, one.kind) for one in people.credentials()] == [("john", "certificate"), ("john", "token")]


def test_credentials_are_bounded(people: UserDirectory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(users, "MAX_ISSUED", 2)
    for _ in range(2):
        people.add_certificate("jane", [], DAY, NOW)
        people.add_token("jane", [], DAY, NOW)
    with pytest.raises(IdentityError, match="has 2 certificates already"):
        people.add_certificate("jane", [], DAY, NOW)
    with pytest.raises(IdentityError, match="there are 2 tokens already"):
        people.add_token("jane", [], DAY, NOW)
    assert len(people.credentials()) == 4


def test_credentials_are_listed_by_user_kind_and_end(people: UserDirectory, tmp_path: Path) -> None:
    add_token(tmp_path / "d" / "tokens.json", "jane")
    people.add_token("jane", [], 3 * DAY, NOW)
    people.add_token("jane", [], 2 * DAY, NOW)
    people.add_certificate("jane", [], DAY, NOW)
    people.add_certificate("anna", [], DAY, NOW)
    listed = people.credentials()
    assert [(one.user, one.kind) for one in listed] == [
        ("anna", "certificate"),
        ("jane", "certificate"),
        *[("jane", "token")] * 3,
    ]
    assert [one.expires and (one.expires - NOW + timedelta(seconds=1)).days for one in listed[2:]] == [2, 3, None]


def test_a_token_that_somebody_else_wrote_is_named_by_its_hash(people: UserDirectory, tmp_path: Path) -> None:
    token = add_token(tmp_path / "d" / "tokens.json", "jane")
    people.add_token("john", [], DAY, NOW)
    foreign, own = people.credentials()
    assert foreign.id == hash_of(token)[:10]
    assert not foreign.revoked
    with pytest.raises(IdentityError, match="there is no token nothing"):
        people.revoke_token("nothing")
    assert people.revoke_token(foreign.id) == "jane"
    assert people.credentials() == [own]


def test_removing_counts_what_was_valid_and_leaves_others_alone(people: UserDirectory, tmp_path: Path) -> None:
    for life in (DAY, 3 * DAY):
        people.add_certificate("jane", [], life, NOW)
        people.add_token("jane", [], life, NOW)
    people.add_certificate("john", [], 3 * DAY, NOW)
    people.add_token("john", [], 3 * DAY, NOW)
    assert people.remove("jane", NOW + 2 * DAY) == 2
    left = [(one.user, one.kind) for one in people.credentials() if not one.revoked]
    assert left == [("jane", "certificate"), ("john", "certificate"), ("john", "token")]
    before = {path.name: path.stat().st_ino for path in (tmp_path / "d").rglob("*") if path.is_file()}
    assert people.remove("jane", NOW + 2 * DAY) == 0
    assert people.remove("nobody", NOW) == 0
    assert {path.name: path.stat().st_ino for path in (tmp_path / "d").rglob("*") if path.is_file()} == before


def test_one_command_changes_the_files_at_a_time(people: UserDirectory, tmp_path: Path) -> None:
    lock = tmp_path / "d" / "users.lock"
    with people.locked(), lock.open() as other, pytest.raises(BlockingIOError):
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
    assert lock.stat().st_mode & 0o777 == 0o600
    with lock.open() as other:
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)


@pytest.mark.parametrize(
    "change",
    [
        lambda people: people.add_certificate("jane", [], DAY, NOW),
        lambda people: people.add_token("jane", [], DAY, NOW),
        lambda people: people.remove("jane", NOW),
        lambda people: people.revoke_all_before("jane", NOW),
    ],
    ids=["a certificate", "a token", "removing", "revoking"],
)
def test_every_change_holds_the_lock(
    people: UserDirectory, monkeypatch: pytest.MonkeyPatch, change: Callable[[UserDirectory], object]
) -> None:
    people.add_certificate("jane", [], DAY, NOW)
    people.add_token("jane", [], DAY, NOW)
    held: list[bool] = []
    real = users.UserDirectory.locked

    @contextmanager
    def noted(self: UserDirectory) -> Iterator[None]:
        with real(self):
            held.append(True)
            yield
            held.append(False)

    def replace(self: Path, target: Path) -> Path:
        assert held[-1:] == [True], target
        return real_replace(self, target)

    real_replace = Path.replace
    monkeypatch.setattr(users.UserDirectory, "locked", noted)
    monkeypatch.setattr(Path, "replace", replace)
    change(people)
    assert held == [True, False]
