"""The key of service accounts is replaced: old tokens stay valid for a while, and a kill in the middle does no harm."""

import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from server.identity.memory import Memory
from situate.server.identity.pki import account_keys
from situate.server.identity.pki.account_keys import (
    KEY,
    PREVIOUS,
    open_account_keys,
    read_previous,
    rotate_account_key,
)
from situate.server.identity.pki.authority import open_authority
from situate.server.identity.secret_files import IdentityError
from situate.server.identity.tokens.service_account_tokens import AccountTokens, BoundObject, TokenError

NOW = datetime.now(UTC).replace(microsecond=0)
HOUR = timedelta(hours=1)
ACCOUNT = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "robot", "namespace": "a", "uid": "u"}}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return open_authority(tmp_path / "pki", NOW).folder


def server(folder: Path) -> AccountTokens:
    return AccountTokens(open_account_keys(folder), Memory(ACCOUNT))


def issued(tokens: AccountTokens) -> str:
    return tokens.issue(ACCOUNT, BoundObject(""), tokens.audiences, NOW, 10 * 86_400, "id")


def is_good(tokens: AccountTokens, token: str, at: datetime = NOW) -> bool:
    try:
        return tokens.verify(token, at).caller.name == "system:serviceaccount:a:robot"
    except TokenError:
        return False


def test_old_tokens_are_valid_for_the_overlap_and_no_longer(folder: Path) -> None:
    running = server(folder)
    old = issued(running)
    assert is_good(running, old)
    rotate_account_key(folder, HOUR, NOW)
    new = issued(running)
    # The server that runs and one that starts say the same.
    for tokens in (running, server(folder)):
        assert is_good(tokens, old, NOW + HOUR - timedelta(seconds=1))
        assert not is_good(tokens, old, NOW + HOUR)
        assert is_good(tokens, new, NOW + HOUR)


def test_a_key_that_is_not_ours_any_more_is_refused_at_once_without_overlap(folder: Path) -> None:
    running = server(folder)
    old = issued(running)
    assert is_good(running, old)
    rotate_account_key(folder, timedelta(0), NOW)
    assert not is_good(running, old)


def test_several_rotations_overlap(folder: Path) -> None:
    tokens = []
    for hours in (3, 2, 1):
        tokens.append(issued(server(folder)))
        rotate_account_key(folder, hours * HOUR, NOW)
    assert [is_good(server(folder), one, NOW + 90 * timedelta(minutes=1)) for one in tokens] == [True, True, False]


def test_keys_that_have_ended_are_dropped_and_the_others_bounded(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(account_keys, "MAX_PREVIOUS", 2)
    rotate_account_key(folder, HOUR, NOW)
    rotate_account_key(folder, 3 * HOUR, NOW)
    with pytest.raises(IdentityError, match="2 keys that are still valid"):
        rotate_account_key(folder, HOUR, NOW)
    rotate_account_key(folder, HOUR, NOW + 2 * HOUR)
    assert len(read_previous(folder)) == 2


@pytest.mark.parametrize("step", [1, 2])
@pytest.mark.parametrize("before", [True, False], ids=["before the write", "after the write"])
def test_a_kill_in_the_middle_leaves_a_working_cluster(folder: Path, step: int, before: bool) -> None:
    running = server(folder)
    old = issued(running)
    _killed_at(step, before, folder)
    for tokens in (running, server(folder)):
        assert is_good(tokens, old)
        assert is_good(tokens, issued(tokens))
    rotate_account_key(folder, HOUR, NOW)
    assert is_good(server(folder), old)
    assert not [path.name for path in folder.iterdir() if path.name in (KEY, PREVIOUS) and path.stat().st_size == 0]


def _killed_at(step: int, before: bool, folder: Path) -> None:
    """Rotate in another process, which is killed at this replacement of a file, without any cleanup."""
    child = os.fork()
    if child == 0:
        real, count = Path.replace, 0

        def replace(self: Path, target: Path) -> Path:
            nonlocal count
            count += 1
            if count == step and before:
                os._exit(9)
            found = real(self, target)
            if count == step:
                os._exit(9)
            return found

        Path.replace = replace  # type: ignore[assignment,method-assign]
        rotate_account_key(folder, HOUR, NOW)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 9


def test_a_damaged_list_is_reported_and_a_running_server_goes_on(folder: Path) -> None:
    running = server(folder)
    old = issued(running)
    (folder / PREVIOUS).write_text("[{")
    (folder / PREVIOUS).chmod(0o600)
    assert is_good(running, old)
    with pytest.raises(IdentityError, match="is damaged"):
        server(folder)


def test_keys_are_read_again_only_when_they_have_changed(folder: Path) -> None:
    keys = open_account_keys(folder)
    first = keys.key
    keys.refresh()
    assert keys.key is first
    rotate_account_key(folder, HOUR, NOW)
    keys.refresh()
    assert keys.key is not first


def test_a_former_key_of_another_type_is_reported(folder: Path) -> None:
    key = rsa.generate_private_key(65537, 2048).public_key()
    text = key.public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo).decode()
    (folder / PREVIOUS).write_text(json.dumps([{"publicKey": text, "until": "2036-01-01T00:00:00Z"}]))
    (folder / PREVIOUS).chmod(0o600)
    with pytest.raises(IdentityError, match="a key of another type than ECDSA"):
        open_account_keys(folder)
