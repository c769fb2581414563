"""The authority is replaced with an overlap; a kill at any write leaves an authority that works."""

import os
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization

from situate.server.errors import StatusError
from situate.server.identity.authentication import Authentication
from situate.server.identity.pki import authority as authority_module
from situate.server.identity.pki import authority_files
from situate.server.identity.pki.account_keys import open_account_keys, rotate_account_key
from situate.server.identity.pki.authority import Authority, open_authority
from situate.server.identity.pki.authority_files import NEXT, PREVIOUS
from situate.server.identity.pki.certificates import is_issued_by, key_hash
from situate.server.identity.pki.kubeconfig import ensure_kubeconfig
from situate.server.identity.pki.rotation import finish_rotation, key_states, rotate_authority, rotate_server
from situate.server.identity.secret_files import IdentityError, write_private

NOW = datetime.now(UTC).replace(microsecond=0)
DAY = timedelta(days=1)
STEPS = 12
"""More than a rotation has."""


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    made = open_authority(tmp_path / "pki", NOW)
    made.server_certificate(["one.example"], NOW)
    return made


def der(pem: bytes) -> bytes:
    return x509.load_pem_x509_certificate(pem).public_bytes(serialization.Encoding.DER)


def counts(authority: Authority, certificate: bytes) -> bool:
    try:
        Authentication(clock=lambda: NOW, issuers=authority.issuers, issuer_of=authority.issuer_of).authenticate(
            der(certificate), ""
        )
    except StatusError:
        return False
    return True


def served(authority: Authority, now: datetime = NOW) -> x509.Certificate:
    return x509.load_pem_x509_certificate(authority.server_certificate([], now).read_bytes())


def test_both_authorities_count_during_the_overlap(authority: Authority) -> None:
    old, former = authority.client("jane", [], NOW).certificate, authority.certificate
    rotate_authority(authority.folder, 10 * DAY, NOW + timedelta(milliseconds=5))
    for one in (authority, open_authority(authority.folder, NOW)):
        one.reload(NOW)
        assert one.previous_until == NOW + 10 * DAY
        assert counts(one, old)
        new = one.client("john", [], NOW).certificate
        assert counts(one, new)
        assert is_issued_by(x509.load_pem_x509_certificate(new), one.certificate)
        assert one.certificate != former
        # Clients that know only the former authority still know the server.
        assert is_issued_by(served(one), former)
        assert x509.load_pem_x509_certificates(one.bundle) == [one.certificate, former]
    assert x509.load_pem_x509_certificates((authority.folder / "ca.crt").read_bytes()) == [one.certificate, former]


def test_the_former_authority_counts_no_more_when_the_overlap_ends(authority: Authority) -> None:
    old = authority.client("jane", [], NOW).certificate
    rotate_authority(authority.folder, 10 * DAY, NOW)
    authority.reload(NOW)
    new = authority.client("john", [], NOW).certificate
    assert is_issued_by(served(authority, NOW + 11 * DAY), authority.certificate)
    finish_rotation(authority.folder, NOW)
    for one in (authority, open_authority(authority.folder, NOW)):
        one.reload(NOW)
        assert not counts(one, old)
        assert counts(one, new)
        assert is_issued_by(served(one), one.certificate)
        assert x509.load_pem_x509_certificates(one.bundle) == [one.certificate]
    assert not (authority.folder / PREVIOUS).exists()
    assert (authority.folder / "ca.crt").read_bytes() == authority.pem
    assert (authority.folder / "ca.crt").stat().st_mode & 0o777 == 0o644
    names = served(authority).extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert "one.example" in names.get_values_for_type(x509.DNSName)
    with pytest.raises(IdentityError, match="no rotation of the authority is under way"):
        finish_rotation(authority.folder, NOW)


def test_a_running_server_ends_the_overlap_itself(authority: Authority) -> None:
    old = authority.client("jane", [], NOW).certificate
    rotate_authority(authority.folder, DAY, NOW)
    authority.reload(NOW)
    assert counts(authority, old)
    authority.drop_previous(NOW)
    assert not counts(authority, old)
    assert counts(authority, authority.client("john", [], NOW).certificate)
    assert (authority.previous, authority.bundle) == (None, authority.pem)
    assert is_issued_by(served(authority), authority.certificate)


def test_one_rotation_at_a_time(authority: Authority) -> None:
    rotate_authority(authority.folder, 10 * DAY, NOW)
    with pytest.raises(IdentityError, match="--finish ends it now"):
        rotate_authority(authority.folder, DAY, NOW)


def test_the_server_gets_a_new_key(authority: Authority) -> None:
    before = served(authority)
    rotate_server(authority.folder, NOW)
    after = served(authority)
    assert after.public_key() != before.public_key()
    names = [one.extensions.get_extension_for_class(x509.SubjectAlternativeName).value for one in (before, after)]
    assert set(names[0]) == set(names[1])


@pytest.mark.parametrize("before", [True, False], ids=["before", "after"])
def test_a_kill_at_any_write_leaves_a_working_authority(tmp_path: Path, before: bool) -> None:
    """Whatever was on disk when the process died: the next start has an authority that knows everybody."""
    decided = 0
    for step in range(1, STEPS):
        made = open_authority(tmp_path / f"pki{step}", NOW)
        made.server_certificate([], NOW)
        old, former = made.client("jane", [], NOW).certificate, made.certificate
        if _killed_at(step, before, partial(rotate_authority, made.folder, DAY, NOW)) == 0:
            break
        again = open_authority(made.folder, NOW)
        assert counts(again, old)
        assert counts(again, again.client("john", [], NOW).certificate)
        assert is_issued_by(served(again), former)
        assert not (made.folder / NEXT).exists()
        decided += again.certificate != former
        # And it can go on.
        if again.previous is None:
            rotate_authority(made.folder, DAY, NOW)
        finish_rotation(made.folder, NOW)
        assert not counts(open_authority(made.folder, NOW), old)
    assert step == 5, "four files are written"
    assert decided == (3 if before else 4)


@pytest.mark.parametrize("before", [True, False], ids=["before", "after"])
def test_a_kill_at_the_end_of_the_overlap_leaves_a_working_authority(tmp_path: Path, before: bool) -> None:
    for step in range(1, STEPS):
        made = open_authority(tmp_path / f"pki{step}", NOW)
        made.server_certificate([], NOW)
        rotate_authority(made.folder, DAY, NOW)
        made.reload(NOW)
        new = made.client("john", [], NOW).certificate
        if _killed_at(step, before, partial(finish_rotation, made.folder, NOW)) == 0:
            break
        again = open_authority(made.folder, NOW)
        assert counts(again, new)
        assert served(again).serial_number
        if again.previous is not None:
            finish_rotation(made.folder, NOW)
        assert is_issued_by(served(open_authority(made.folder, NOW)), again.certificate)
    assert step == 3, "two files are written"


def _killed_at(step: int, before: bool, work: Callable[[], None]) -> int:
    """Do it in another process, which is killed at this replacement of a file; 0 if it completed."""
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
        work()
        os._exit(0)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status)


def test_a_running_server_leaves_a_rotation_that_is_under_way_alone(
    authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    former = authority.certificate
    assert _killed_at(1, False, lambda: rotate_authority(authority.folder, DAY, NOW)) == 9
    with pytest.raises(IdentityError, match="is being replaced"):
        authority.reload(NOW)
    assert authority.certificate == former
    monkeypatch.setattr(authority_files, "UNDER_WAY_S", 0.0)
    authority.reload(NOW)
    assert authority.certificate != former


@pytest.mark.parametrize("name", [PREVIOUS, NEXT])
def test_a_damaged_file_is_one_line(authority: Authority, name: str) -> None:
    (authority.folder / name).write_text("{")
    (authority.folder / name).chmod(0o600)
    with pytest.raises(IdentityError, match="is damaged"):
        open_authority(authority.folder, NOW)


def test_the_list_names_what_there_is(authority: Authority, tmp_path: Path) -> None:
    def names() -> list[str]:
        return [one.name for one in key_states(authority.folder, tmp_path / "none", NOW)]

    assert names() == ["authority", "server", "service-accounts"]
    rotate_authority(authority.folder, DAY, NOW)
    assert names() == ["authority", "authority", "server", "service-accounts"]
    config = tmp_path / "kubeconfig"
    ensure_kubeconfig(config, authority, "https://127.0.0.1:1", "root", ["system:masters"], NOW)
    states = {one.name: one for one in key_states(authority.folder, config, NOW)}
    assert states["administrator"].expires == NOW + timedelta(days=365)
    rotate_account_key(authority.folder, DAY, NOW)
    uses = [one.use for one in key_states(authority.folder, config, NOW) if one.name == "service-accounts"]
    assert uses == ["signs", "verifies until then"]
    assert len(key_states(authority.folder, config, NOW + DAY)) == len(key_states(authority.folder, config, NOW)) - 1
    for text in ("{", "users: []"):
        config.write_text(text)
        with pytest.raises(IdentityError, match="kubeconfig is damaged"):
            key_states(authority.folder, config, NOW)


def test_each_key_is_listed_with_its_id_its_end_and_its_use(authority: Authority, tmp_path: Path) -> None:
    former = authority.certificate
    rotate_authority(authority.folder, DAY, NOW)
    authority.reload(NOW)
    ensure_kubeconfig(tmp_path / "kubeconfig", authority, "https://127.0.0.1:1", "root", ["system:masters"], NOW)
    own, rest = served(authority), (NOW + 365 * DAY - (365 * DAY + timedelta(hours=2)) / 3).astimezone(UTC)
    new, old, server, admin, accounts = key_states(authority.folder, tmp_path / "kubeconfig", NOW)
    assert (f"sha256:{new.id}", new.use) == (key_hash(authority.certificate), "signs")
    assert (new.expires, old.expires) == (authority.certificate.not_valid_after_utc, NOW + DAY)
    assert (f"sha256:{old.id}", old.use) == (key_hash(former), "trusted until then")
    assert (server.id, server.expires) == (f"{own.serial_number:x}", own.not_valid_after_utc)
    assert server.use == f"renewed after {rest:%Y-%m-%d}"
    assert admin.use == f"renewed when the server starts after {rest:%Y-%m-%d}"
    assert (accounts.id, accounts.expires) == (open_account_keys(authority.folder).id, None)


def test_a_server_that_has_no_certificate_yet_gets_none_by_a_rotation(tmp_path: Path) -> None:
    made = open_authority(tmp_path / "pki", NOW)
    with pytest.raises(IdentityError, match=r"server\.pem is missing; the server makes it when it starts"):
        rotate_server(made.folder, NOW)
    assert not (made.folder / "server.pem").exists()
    assert [one.name for one in key_states(made.folder, tmp_path / "none", NOW)] == ["authority", "service-accounts"]


def test_the_former_authority_signs_for_servers_until_the_overlap_ends(authority: Authority) -> None:
    former = authority.certificate
    rotate_authority(authority.folder, DAY, NOW)
    authority.reload(NOW)
    assert authority.for_servers(NOW + DAY - timedelta(seconds=1))[0] == former
    assert authority.for_servers(NOW + DAY)[0] == authority.certificate
    agent = x509.load_pem_x509_certificate(authority.server_client("situate", NOW).certificate)
    assert is_issued_by(agent, former)


def test_removed_files_stay_removed_after_a_crash(authority: Authority, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder is synced when ca.next.json and ca.previous.json are gone, not before."""
    seen: list[tuple[bool, bool]] = []

    def sync(folder: Path) -> None:
        seen.append(((folder / NEXT).exists(), (folder / PREVIOUS).exists()))

    monkeypatch.setattr(authority_files, "sync_folder", sync)
    monkeypatch.setattr(authority_module, "sync_folder", sync)
    rotate_authority(authority.folder, DAY, NOW)
    assert seen == [(False, True)]
    finish_rotation(authority.folder, NOW)
    assert seen == [(False, True), (False, False)]


def test_somebody_else_may_complete_the_same_rotation(authority: Authority, monkeypatch: pytest.MonkeyPatch) -> None:
    def completed_meanwhile(path: Path, content: bytes, mode: int = 0o600) -> None:
        write_private(path, content, mode)
        if path.name == "ca.crt":
            (path.parent / NEXT).unlink()

    monkeypatch.setattr(authority_files, "write_private", completed_meanwhile)
    rotate_authority(authority.folder, DAY, NOW)
    authority.reload(NOW)
    (authority.folder / PREVIOUS).unlink()
    authority.drop_previous(NOW)
    assert open_authority(authority.folder, NOW).certificate == authority.certificate


def test_a_rotation_is_under_way_for_ten_seconds(authority: Authority, monkeypatch: pytest.MonkeyPatch) -> None:
    assert _killed_at(1, False, lambda: rotate_authority(authority.folder, DAY, NOW)) == 9
    began = (authority.folder / NEXT).stat().st_mtime
    now = [began + 9.5]
    monkeypatch.setattr("time.time", lambda: now[0])
    with pytest.raises(IdentityError, match="is being replaced"):
        authority.reload(NOW)
    now[0] = began + 10.0
    authority.reload(NOW)
    assert authority.previous is not None
