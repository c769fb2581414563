"""Certificates over a real TLS socket: who comes through, as whom, and who does not."""

import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import hashes

from server.identity.clock import Clock
from server.identity.memory import Memory
from server.identity.revoking import revoke_certificate
from situate.server.errors import StatusError
from situate.server.identity.authentication import Authentication
from situate.server.identity.pki import certificates
from situate.server.identity.pki.authority import Authority, open_authority
from situate.server.identity.pki.certificates import Credential
from situate.server.identity.pki.revocation import Revocations

TIMEOUT_S = 10.0


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def authority(tmp_path: Path, clock: Clock) -> Authority:
    return open_authority(tmp_path / "pki", clock.now)


@contextmanager
def listening(context: ssl.SSLContext, answer: Callable[[bytes | None], str]) -> Iterator[int]:
    """A server that says, to each who comes, who it takes them for."""
    listener = socket.create_server(("127.0.0.1", 0))
    listener.settimeout(TIMEOUT_S)

    def serve() -> None:
        while True:
            try:
                plain, _ = listener.accept()
            except OSError:
                return
            plain.settimeout(TIMEOUT_S)
            try:
                with context.wrap_socket(plain, server_side=True) as connection:
                    connection.recv(1)
                    connection.sendall(answer(connection.getpeercert(binary_form=True)).encode())
            except (OSError, ValueError):  # ValueError: it was gone before it had come
                plain.close()

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join()


def asked(
    port: int,
    trusted: Authority,
    tmp_path: Path,
    credential: Credential | None = None,
    version: ssl.TLSVersion | None = None,
) -> str:
    """What the server says, or what became of the connection."""
    context = ssl.create_default_context(cadata=trusted.pem.decode())
    context.verify_flags |= ssl.VERIFY_X509_STRICT
    if version is not None:
        context.minimum_version = context.maximum_version = version
    if credential is not None:
        file = tmp_path / "client.pem"
        file.write_bytes(credential.certificate + credential.key)
        context.load_cert_chain(file)
    try:
        with (
            socket.create_connection(("127.0.0.1", port), TIMEOUT_S) as plain,
            context.wrap_socket(plain, server_hostname="localhost") as connection,
        ):
            connection.sendall(b"?")
            return connection.recv(200).decode()
    except ssl.SSLCertVerificationError as error:
        return f"client refuses: {error.verify_message}"
    except (ssl.SSLError, ConnectionError) as error:
        return f"server refuses: {getattr(error, 'reason', '') or type(error).__name__}"


@pytest.fixture
def port(authority: Authority, clock: Clock) -> Iterator[int]:
    authentication = Authentication(clock=clock, revoked=Revocations(authority.folder / "revoked", Memory()))

    def answer(peer: bytes | None) -> str:
        try:
            caller = authentication.authenticate(peer, "")
        except StatusError as error:
            return f"{error.code} {error.message}"
        return f"{caller.name} {' '.join(caller.groups)}"

    with listening(authority.tls([], clock.now), answer) as number:
        yield number


def test_a_client_certificate_says_who_comes(port: int, authority: Authority, clock: Clock, tmp_path: Path) -> None:
    jane = authority.client("jane", ["dev", "ops"], clock.now)
    assert asked(port, authority, tmp_path, jane) == "jane dev ops system:authenticated"


def test_whoever_shows_nothing_is_anonymous(port: int, authority: Authority, tmp_path: Path) -> None:
    assert asked(port, authority, tmp_path) == "system:anonymous system:unauthenticated"


def test_an_expired_certificate_does_not_come_through(
    port: int, authority: Authority, clock: Clock, tmp_path: Path
) -> None:
    old = authority.client("jane", [], clock.now - timedelta(days=366))
    assert asked(port, authority, tmp_path, old).startswith("server refuses: ")


def test_one_that_is_not_yet_good_does_not_come_through(
    port: int, authority: Authority, clock: Clock, tmp_path: Path
) -> None:
    early = authority.client("jane", [], clock.now + timedelta(days=1))
    assert asked(port, authority, tmp_path, early).startswith("server refuses: ")


def test_a_certificate_of_another_authority_does_not_come_through(
    port: int, authority: Authority, clock: Clock, tmp_path: Path
) -> None:
    stranger = open_authority(tmp_path / "other", clock.now).client("root", ["system:masters"], clock.now)
    assert asked(port, authority, tmp_path, stranger).startswith("server refuses: ")


def test_one_signed_by_a_clients_own_key_does_not_come_through(
    port: int, authority: Authority, clock: Clock, tmp_path: Path
) -> None:
    """A client is no authority, even if its name is that of one."""
    key = certificates.new_key()
    own = certificates.authority_certificate(key, clock.now)
    signed = certificates.client_certificate(
        own, key, certificates.subject("root", ["system:masters"]), key.public_key(), clock.now
    )
    forged = Credential(certificates.pem(signed), certificates.key_pem(key))
    assert own.subject == authority.certificate.subject
    assert asked(port, authority, tmp_path, forged).startswith("server refuses: ")


def test_the_servers_own_certificate_is_none_for_clients(port: int, authority: Authority, tmp_path: Path) -> None:
    text = (authority.folder / "server.pem").read_bytes()
    start = text.index(b"-----BEGIN PRIVATE KEY")
    assert asked(port, authority, tmp_path, Credential(text[:start], text[start:])).startswith("server refuses: ")


def test_a_revoked_certificate_is_nobodys_from_then_on(
    port: int, authority: Authority, clock: Clock, tmp_path: Path
) -> None:
    jane = authority.client("jane", [], clock.now)
    assert asked(port, authority, tmp_path, jane).startswith("jane ")
    revoke_certificate(authority, jane.certificate)
    assert asked(port, authority, tmp_path, jane) == "401 Unauthorized"


def test_a_certificate_that_ends_while_the_server_runs_is_nobodys(
    port: int, authority: Authority, clock: Clock, tmp_path: Path
) -> None:
    jane = authority.client("jane", [], clock.now)
    clock.turn(days=366)
    assert asked(port, authority, tmp_path, jane) == "401 Unauthorized"


def test_older_versions_of_tls_are_refused(port: int, authority: Authority, tmp_path: Path) -> None:
    with pytest.warns(DeprecationWarning, match="TLSv1_1"):
        said = asked(port, authority, tmp_path, version=ssl.TLSVersion.TLSv1_1)
    assert said.startswith("server refuses: ")
    assert asked(port, authority, tmp_path, version=ssl.TLSVersion.TLSv1_2).startswith("system:anonymous")


def test_a_client_that_trusts_another_authority_goes_away(
    port: int, authority: Authority, clock: Clock, tmp_path: Path
) -> None:
    other = open_authority(tmp_path / "other", clock.now)
    assert asked(port, other, tmp_path).startswith("client refuses: ")


def test_a_renewed_certificate_is_served_without_a_restart(authority: Authority, clock: Clock, tmp_path: Path) -> None:
    context = authority.tls([], clock.now - timedelta(days=300))
    with listening(context, lambda _: "here") as port:
        before = ssl.get_server_certificate(("127.0.0.1", port), timeout=TIMEOUT_S)
        context.load_cert_chain(authority.server_certificate([], clock.now))
        after = ssl.get_server_certificate(("127.0.0.1", port), timeout=TIMEOUT_S)
        assert asked(port, authority, tmp_path) == "here"
    assert before != after


def test_the_hash_of_signatures_is_a_strong_one(authority: Authority) -> None:
    assert isinstance(authority.certificate.signature_hash_algorithm, hashes.SHA256)
