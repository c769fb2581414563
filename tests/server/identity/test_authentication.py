from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization

from server.identity.clock import Clock
from server.identity.memory import Memory
from server.identity.revoking import revoke_certificate
from server.identity.user_tokens import add_token
from situate.server.errors import StatusError
from situate.server.identity.authentication import Authentication
from situate.server.identity.pki.authority import Authority, open_authority
from situate.server.identity.pki.revocation import Revocations
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
    authentication = Authentication(clock=clock)
    for header in ("", "Basic dTpw", "Bearer", "Bearer  ", "Negotiate x"):
        caller = authentication.authenticate(None, header, "curl/8")
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
    authentication = Authentication(clock=clock, users=UserTokens(tmp_path / "t"))
    for header in ("Bearer x", "bearer x", "BEARER  x"):
        with pytest.raises(StatusError, match="Unauthorized"):
            authentication.authenticate(None, header)


def test_a_token_is_taken_however_bearer_is_written(clock: Clock, tmp_path: Path) -> None:
    users = UserTokens(tmp_path / "t")
    token = add_token(tmp_path / "t", "jane")
    authentication = Authentication(clock=clock, users=users)
    for header in (f"Bearer {token}", f"bearer {token}", f"  Bearer   {token} "):
        assert authentication.authenticate(None, header).name == "jane"


def test_a_certificate_goes_before_a_token(clock: Clock, authority: Authority) -> None:
    authentication = Authentication(clock=clock)
    peer = der(authority.client("jane", ["dev"], clock.now).certificate)
    caller = authentication.authenticate(peer, "Bearer wrong", "kubectl/1")
    assert (caller.name, caller.groups, caller.agent) == ("jane", ("dev", "system:authenticated"), "kubectl/1")
    assert authentication.authenticate(peer, "", "other/2").agent == "other/2"
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
    authentication = Authentication(clock=clock, users=users)
    assert authentication.authenticate(None, f"Bearer {token}").name == "jane"
    (tmp_path / "t").write_text("[{")
    for _ in range(2):
        with pytest.raises(StatusError, match="Unauthorized"):
            authentication.authenticate(None, f"Bearer {token}")
    assert "is damaged" in authentication.last_error


def test_what_was_revoked_stays_so_whatever_becomes_of_the_file(clock: Clock, authority: Authority) -> None:
    jane = authority.client("jane", [], clock.now).certificate
    authentication = Authentication(clock=clock, revoked=Revocations(authority.folder / "revoked", Memory()))
    assert authentication.authenticate(der(jane), "").name == "jane"
    revoke_certificate(authority, jane)
    for change in (lambda path: path.write_text("zz"), lambda path: path.unlink(), lambda path: None):
        with pytest.raises(StatusError, match="Unauthorized"):
            authentication.authenticate(der(jane), "")
        change(authority.folder / "revoked")
