"""Login links: once, for a while, and for nobody who guesses."""

import stat
from pathlib import Path

import pytest

from situate.web import grants
from situate.web.grants import GrantFolder, LoginGrant, TooManyGrantsError
from situate.web.limits import GRANT_S


class Clock:
    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


def test_a_link_says_whom_it_logs_in_and_works_once(tmp_path: Path) -> None:
    folder = GrantFolder(tmp_path / "page")
    token = folder.create("alice", ("readers",), "shop")
    found = folder.redeem(token)
    assert found is not None
    assert (found.user, found.groups, found.namespace) == ("alice", ("readers",), "shop")
    assert folder.redeem(token) is None


def test_a_link_expires(tmp_path: Path) -> None:
    clock = Clock()
    folder = GrantFolder(tmp_path, clock)
    token = folder.create()
    clock.now += GRANT_S
    assert folder.redeem(token) is None


@pytest.mark.parametrize("token", ["", "guessed", "../../etc/passwd", "x" * 10_000])
def test_a_token_that_was_never_made_logs_in_nobody(tmp_path: Path, token: str) -> None:
    assert GrantFolder(tmp_path).redeem(token) is None


def test_files_are_private_and_do_not_hold_the_token(tmp_path: Path) -> None:
    token = GrantFolder(tmp_path / "page").create()
    (file,) = (tmp_path / "page").iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "page").stat().st_mode) == 0o700
    assert token not in file.name + file.read_text()


def test_links_that_nobody_uses_are_limited_until_they_expire(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grants, "MAX_GRANTS", 2)
    clock = Clock()
    folder = GrantFolder(tmp_path, clock)
    folder.create()
    folder.create()
    with pytest.raises(TooManyGrantsError):
        folder.create()
    clock.now += GRANT_S
    assert folder.redeem(folder.create()) == LoginGrant(expires=clock.now + GRANT_S)


def test_a_damaged_file_is_nobodys_login(tmp_path: Path) -> None:
    folder = GrantFolder(tmp_path)
    token = folder.create()
    (file,) = tmp_path.iterdir()
    file.write_bytes(b"{")
    assert folder.redeem(token) is None
