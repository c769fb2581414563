"""What a local administrator does for people, on the directory of a cluster."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization

from server.identity.memory import Memory
from situate.server.errors import StatusError
from situate.server.identity.authentication import Authentication
from situate.server.identity.secret_files import IdentityError
from situate.server.identity.setup import open_identity
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
