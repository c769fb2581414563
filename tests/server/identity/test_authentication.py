from datetime import timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization

from server.identity.clock import Clock
from server.identity.memory import Memory
from server.identity.revoking import revoke_certificate
from server.identity.user_tokens import add_token
from situate.server.errors import StatusError
from situate.server.identity import authentication
from situate.server.identity.authentication import Authentication
from situate.server.identity.joining.bootstrap_tokens import BootstrapTokens, new_token, token_secret
from situate.server.identity.pki.account_keys import AccountKeys
from situate.server.identity.pki.authority import Authority, open_authority
from situate.server.identity.pki.certificates import new_key
from situate.server.identity.pki.revocation import Revocations
from situate.server.identity.tokens.service_account_tokens import AccountTokens, TokenError
from situate.server.identity.tokens.token_files import UserTokens


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def authority(tmp_path: Path, clock: Clock) -> Authority:
    return open_authority(tmp_path / "pki", clock.now)


def der(pem: bytes) -> bytes:
    return x509.load_pem_x509_certificate(pem).public_bytes(serialization.Encoding.DER)


def test_nothing_shown_is_anonymous_and_so_is_what_is_no_bearer_token(clock: Clock) -> None:
    known = Authentication(clock=clock)
    for header in ("", "Basic dTpw", "Bearer", "Bearer  ", "Negotiate x"):
        caller = known.authenticate(None, header, "curl/8")
        assert (caller.name, caller.groups) == ("system:anonymous", ("system:unauthenticated",))
        assert caller.agent == "curl/8"


def test_without_anonymous_requests_nothing_shown_is_refused(clock: Clock) -> None:
    with pytest.raises(StatusError) as raised:
        Authentication(clock=clock, anonymous=False).authenticate(None, "")
    assert raised.value.status() == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": "Unauthorized",
        "reason": "Unauthorized",
        "code": 401,
    }


def test_a_wrong_token_is_refused_and_never_anonymous(clock: Clock, tmp_path: Path) -> None:
    known = Authentication(clock=clock, users=UserTokens(tmp_path / "t"))
    for header in ("Bearer x", "bearer x", "BEARER  x"):
        with pytest.raises(StatusError, match="Unauthorized"):
            known.authenticate(None, header)


def test_a_token_is_taken_however_bearer_is_written(clock: Clock, tmp_path: Path) -> None:
    users = UserTokens(tmp_path / "t")
    token = add_token(tmp_path / "t", "jane")
    known = Authentication(clock=clock, users=users)
    for header in (f"Bearer {token}", f"bearer {token}", f"  Bearer   {token} "):
        assert known.authenticate(None, header).name == "jane"


def test_a_certificate_goes_before_a_token(clock: Clock, authority: Authority) -> None:
    known = Authentication(clock=clock)
    peer = der(authority.client("jane", ["dev"], clock.now).certificate)
    caller = known.authenticate(peer, "Bearer wrong", "kubectl/1")
    assert (caller.name, caller.groups, caller.agent) == ("jane", ("dev", "system:authenticated"), "kubectl/1")
    assert known.authenticate(peer, "", "other/2").agent == "other/2"
    assert caller.extra["authentication.kubernetes.io/credential-id"][0].startswith("X509SHA256=")


def test_a_certificate_without_a_name_is_nobodys(clock: Clock, authority: Authority) -> None:
    from situate.server.identity.pki import certificates

    key = certificates.new_key()
    made = certificates.client_certificate(
        authority.certificate, authority.key, x509.Name([]), key.public_key(), clock.now
    )
    with pytest.raises(StatusError, match="Unauthorized"):
        Authentication(clock=clock).authenticate(made.public_bytes(serialization.Encoding.DER), "")


def test_a_file_of_tokens_that_is_damaged_meanwhile_lets_nobody_in(clock: Clock, tmp_path: Path) -> None:
    users = UserTokens(tmp_path / "t")
    token = add_token(tmp_path / "t", "jane")
    known = Authentication(clock=clock, users=users)
    assert known.authenticate(None, f"Bearer {token}").name == "jane"
    (tmp_path / "t").write_text("[{")
    for _ in range(2):
        with pytest.raises(StatusError, match="Unauthorized"):
            known.authenticate(None, f"Bearer {token}")
    assert "is damaged" in known.last_error


def test_what_was_revoked_stays_so_whatever_becomes_of_the_file(clock: Clock, authority: Authority) -> None:
    jane = authority.client("jane", [], clock.now).certificate
    known = Authentication(clock=clock, revoked=Revocations(authority.folder / "revoked", Memory()))
    assert known.authenticate(der(jane), "").name == "jane"
    revoke_certificate(authority, jane)
    for change in (lambda path: path.write_text("zz"), lambda path: path.unlink(), lambda path: None):
        with pytest.raises(StatusError, match="Unauthorized"):
            known.authenticate(der(jane), "")
        change(authority.folder / "revoked")


class Reader:
    """Counts how often a certificate is read."""

    def __init__(self, clock: Clock, authority: Authority) -> None:
        self.times = 0
        self.authentication = Authentication(clock=clock, issuers=authority.issuers, issuer_of=self.issuer_of)
        self._authority = authority

    def issuer_of(self, certificate: x509.Certificate) -> bytes:
        self.times += 1
        return self._authority.issuer_of(certificate)

    def reads(self, peer: bytes, *agents: str) -> int:
        """How many of these requests made it read the certificate."""
        before = self.times
        for agent in agents:
            assert self.authentication.authenticate(peer, "", agent).agent == agent
        return self.times - before


def test_a_certificate_is_read_once_for_an_agent_that_is_not_too_long(clock: Clock, authority: Authority) -> None:
    reader = Reader(clock, authority)
    jane, john = (der(authority.client(name, [], clock.now).certificate) for name in ("jane", "john"))
    assert reader.reads(jane, "a", "a", "b", "a", "b") == 2
    assert reader.reads(john, "a", "a") == 1
    most = "x" * authentication.MAX_CACHED_AGENT
    assert reader.reads(jane, most, most) == 1
    assert reader.reads(jane, most + "x", most + "x") == 2


def test_certificates_that_are_known_are_bounded(
    clock: Clock, authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(authentication, "MAX_CACHED_CERTIFICATES", 2)
    reader = Reader(clock, authority)
    jane = der(authority.client("jane", [], clock.now).certificate)
    assert reader.reads(jane, "a", "b", "a", "b") == 2
    assert reader.reads(jane, "c", "c") == 1
    assert reader.reads(jane, "a", "b") == 2


def test_a_certificate_is_good_from_its_first_second_to_its_last(clock: Clock, authority: Authority) -> None:
    made = authority.client("jane", [], clock.now).certificate
    read = x509.load_pem_x509_certificate(made)
    known = Authentication(clock=clock)
    for at in (read.not_valid_before_utc, read.not_valid_after_utc):
        clock.now = at
        assert known.authenticate(der(made), "").name == "jane"
    for at in (read.not_valid_before_utc - timedelta(seconds=1), read.not_valid_after_utc + timedelta(seconds=1)):
        clock.now = at
        with pytest.raises(StatusError, match="Unauthorized"):
            known.authenticate(der(made), "")


def test_tokens_of_nodes_and_of_users_are_told_apart(clock: Clock, tmp_path: Path) -> None:
    joining = new_token()
    bootstrap = BootstrapTokens(Memory(token_secret(joining, clock.now + timedelta(hours=1))))
    jane = add_token(tmp_path / "t", "jane")
    known = Authentication(clock=clock, users=UserTokens(tmp_path / "t"), bootstrap=bootstrap)
    assert known.last_error == ""
    assert known.authenticate(None, f"Bearer {joining}").name == f"system:bootstrap:{joining[:6]}"
    assert known.authenticate(None, f"Bearer {jane}").name == "jane"
    assert known.by_token("other") is None


def test_a_users_token_is_for_the_servers_own_audiences(clock: Clock, tmp_path: Path) -> None:
    jane = add_token(tmp_path / "t", "jane")
    users = UserTokens(tmp_path / "t")
    accounts = AccountTokens(AccountKeys(new_key()), Memory(), audiences=("ours", "also ours"))
    known = Authentication(clock=clock, users=users, accounts=accounts)
    assert known.review(jane).audiences == ("ours", "also ours")
    assert known.review(jane, ("theirs", "also ours")).audiences == ("also ours",)
    with pytest.raises(TokenError, match="not valid for any of the audiences"):
        known.review(jane, ("theirs",))
    alone = Authentication(clock=clock, users=users)
    assert alone.review(jane).audiences == ()
    with pytest.raises(TokenError, match="not valid for any of the audiences"):
        alone.review(jane, ("theirs",))
