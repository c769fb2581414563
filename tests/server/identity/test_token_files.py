import hmac
import stat
from datetime import timedelta
from pathlib import Path

import pytest

from server.identity.clock import Clock
from situate.server.identity.secret_files import IdentityError
from situate.server.identity.token_files import JOIN_PATTERN, JoinTokens, UserTokens, find_hash


@pytest.fixture
def users(tmp_path: Path) -> UserTokens:
    return UserTokens(tmp_path / "tokens.json")


@pytest.fixture
def joining(tmp_path: Path) -> JoinTokens:
    return JoinTokens(tmp_path / "join-tokens.json")


def test_a_token_says_who_comes(users: UserTokens) -> None:
    token = users.add("jane", ["dev"], uid="1")
    users.add("john")
    found = users.find(token)
    assert found is not None
    assert (found.name, found.groups, found.uid) == ("jane", ("dev", "system:authenticated"), "1")
    assert users.find(token + "x") is None
    assert users.find(token[:-1]) is None
    assert users.find("") is None


def test_tokens_are_on_disk_only_as_hashes_and_for_the_owner_only(users: UserTokens, tmp_path: Path) -> None:
    token = users.add("jane")
    path = tmp_path / "tokens.json"
    assert token not in path.read_text()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert len(token) >= 43


def test_a_token_that_is_taken_out_is_refused_from_then_on(users: UserTokens, tmp_path: Path) -> None:
    token = users.add("jane")
    kept = users.add("john")
    assert users.find(token) is not None
    assert UserTokens(tmp_path / "tokens.json").remove("jane") == 1
    assert users.find(token) is None
    assert users.find(kept) is not None
    assert users.remove("nobody") == 0


def test_every_hash_is_compared_in_full_whichever_it_is(users: UserTokens, monkeypatch: pytest.MonkeyPatch) -> None:
    """So how long it takes says nothing about which token was nearly right, or where it stands."""
    all_tokens = [users.add(f"u{number}") for number in range(5)]
    compared: list[tuple[int, int]] = []
    real = hmac.compare_digest

    def count(a: str, b: str) -> bool:
        compared.append((len(a), len(b)))
        return real(a, b)

    monkeypatch.setattr(hmac, "compare_digest", count)
    for token in (all_tokens[0], all_tokens[4], "wrong"):
        compared.clear()
        users.find(token)
        assert compared == [(64, 64)] * 5


def test_the_last_of_equal_hashes_counts() -> None:
    assert find_hash("a", ["a", "b", "a"]) == 2
    assert find_hash("c", ["a", "b"]) == -1


@pytest.mark.parametrize("text", ["{", "[1]", '[{"user": "x"}]', '[{"sha256": "x", "user": "x", "odd": 1}]'])
def test_a_damaged_file_is_told_and_left_alone(users: UserTokens, tmp_path: Path, text: str) -> None:
    path = tmp_path / "tokens.json"
    path.write_text(text)
    path.chmod(0o600)
    with pytest.raises(IdentityError, match=r"tokens\.json is damaged"):
        users.find("x")
    with pytest.raises(IdentityError, match=r"tokens\.json is damaged"):
        users.add("x")
    assert path.read_text() == text


def test_a_join_token_has_the_shape_of_kubernetes_and_is_good_for_a_day(joining: JoinTokens) -> None:
    clock = Clock()
    token = joining.add(clock.now)
    assert JOIN_PATTERN.fullmatch(token)
    found = joining.find(token, clock.now)
    assert found is not None
    assert found.name == f"system:bootstrap:{token[:6]}"
    assert found.groups == ("system:bootstrappers", "system:authenticated")
    assert joining.find(token, clock.now + timedelta(hours=23, minutes=59)) is not None
    assert joining.find(token, clock.now + timedelta(hours=24)) is None


def test_a_join_token_is_good_once(joining: JoinTokens, tmp_path: Path) -> None:
    now = Clock().now
    token, other = joining.add(now), joining.add(now)
    found = joining.find(token, now)
    assert found is not None
    assert joining.spend(found, now)
    assert not joining.spend(found, now)
    assert joining.find(token, now) is None
    assert joining.find(other, now) is not None
    assert token[7:] not in (tmp_path / "join-tokens.json").read_text()


@pytest.mark.parametrize(
    "wrong", ["", "abcdef", "abcdef.0123456789abcde", "ABCDEF.0123456789abcdef", "abcdef.0123456789abcdef "]
)
def test_what_has_not_the_shape_of_a_join_token_is_none(joining: JoinTokens, wrong: str) -> None:
    joining.add(Clock().now)
    assert joining.find(wrong, Clock().now) is None


def test_the_secret_of_one_join_token_with_the_name_of_another_is_none(joining: JoinTokens) -> None:
    now = Clock().now
    first, second = joining.add(now), joining.add(now)
    assert joining.find(f"{first[:6]}{second[6:]}", now) is None
