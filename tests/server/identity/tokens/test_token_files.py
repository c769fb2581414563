import hmac
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from server.identity.user_tokens import add_token, remove_tokens
from situate.server.identity.secret_files import IdentityError
from situate.server.identity.tokens.token_files import UserToken, UserTokens, find_hash, hash_of

NOW = datetime.now(UTC)


@pytest.fixture
def users(tmp_path: Path) -> UserTokens:
    return UserTokens(tmp_path / "tokens.json")


def test_a_token_says_who_comes(users: UserTokens, tmp_path: Path) -> None:
    token = add_token(tmp_path / "tokens.json", "jane", ["dev"], uid="1")
    add_token(tmp_path / "tokens.json", "john")
    found = users.find(token, NOW)
    assert found is not None
    assert (found.name, found.groups, found.uid) == ("jane", ("dev", "system:authenticated"), "1")
    assert users.find(token + "x", NOW) is None
    assert users.find(token[:-1], NOW) is None
    assert users.find("", NOW) is None


def test_a_token_that_is_taken_out_is_refused_from_then_on(users: UserTokens, tmp_path: Path) -> None:
    path = tmp_path / "tokens.json"
    token = add_token(path, "jane")
    kept = add_token(path, "john")
    assert users.find(token, NOW) is not None
    remove_tokens(path, "jane")
    assert users.find(token, NOW) is None
    assert users.find(kept, NOW) is not None


def test_every_hash_is_compared_in_full_whichever_it_is(
    users: UserTokens, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So how long it takes says nothing about which token was nearly right, or where it stands."""
    all_tokens = [add_token(tmp_path / "tokens.json", f"u{number}") for number in range(5)]
    compared: list[tuple[int, int]] = []
    real = hmac.compare_digest

    def count(a: str, b: str) -> bool:
        compared.append((len(a), len(b)))
        return real(a, b)

    monkeypatch.setattr(hmac, "compare_digest", count)
    for token in (all_tokens[0], all_tokens[4], "wrong"):
        compared.clear()
        users.find(token, NOW)
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
        users.find("x", NOW)
    assert path.read_text() == text


def test_a_token_expires(users: UserTokens) -> None:
    users.write([UserToken(hash_of("a"), "jane", expires=NOW)])
    assert users.find("a", NOW - timedelta(seconds=1)) is not None
    assert users.find("a", NOW) is None
