"""Clients that nobody knows, or that claim to be somebody else."""

# ruff: noqa: E501 - tables read better in rows

import base64
import json
import ssl
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import jwt
import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, load_pem_private_key
from cryptography.x509.oid import NameOID

from server.faults.process import Plane
from server.faults.wire import NoAnswerError, Wire

PODS = "/api/v1/namespaces/corpus/pods"


@pytest.fixture
def anybody(plane: Plane) -> Iterator[Wire]:
    with Wire(plane.port, plane.anybody()) as wire:
        yield wire


def certified(plane: Plane, folder: Path, *, own: bool, days: tuple[int, int]) -> ssl.SSLContext:
    """A client with a certificate for an administrator: by our authority, or by one of the same name; valid when?"""
    authority = x509.load_pem_x509_certificate((plane.directory / "pki" / "ca.crt").read_bytes())
    ours = load_pem_private_key((plane.directory / "pki" / "ca.key").read_bytes(), None)
    signer = ours if own else ec.generate_private_key(ec.SECP256R1())
    assert isinstance(signer, ec.EllipticCurvePrivateKey)
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name(
        [
            x509.NameAttribute(NameOID.ORGANIZATION_NAME, "system:masters"),
            x509.NameAttribute(NameOID.COMMON_NAME, "admin"),
        ]
    )
    now = datetime.now(UTC)
    usage = x509.ExtendedKeyUsage([x509.oid.ExtendedKeyUsageOID.CLIENT_AUTH])
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(authority.subject)
        .public_key(key.public_key())
        .serial_number(7)
        .not_valid_before(now + timedelta(days=days[0]))
        .not_valid_after(now + timedelta(days=days[1]))
        .add_extension(usage, critical=False)
        .sign(signer, SHA256())
    )
    file = folder / "client.pem"
    file.write_bytes(
        made.public_bytes(Encoding.PEM) + key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    )
    context = plane.anybody()
    context.load_cert_chain(str(file))
    return context


@pytest.mark.parametrize(
    "own, days",
    [pytest.param(False, (-1, 1), id="of another authority"), pytest.param(True, (-9, -1), id="expired"),
     pytest.param(True, (1, 9), id="not valid yet")],
)  # fmt: skip
def test_a_certificate_that_is_not_good_lets_nobody_in(
    own: bool, days: tuple[int, int], plane: Plane, tmp_path: Path
) -> None:
    with Wire(plane.port, certified(plane, tmp_path, own=own, days=days)) as wire:
        try:
            answer = wire.ask("GET", PODS)
        except NoAnswerError:
            return  # turned away in the handshake
        assert answer.code == 401


def test_a_certificate_of_ours_that_is_good_lets_in(plane: Plane, tmp_path: Path) -> None:
    """So the test above is about what is wrong."""
    with Wire(plane.port, certified(plane, tmp_path, own=True, days=(-1, 1))) as wire:
        assert wire.ask("GET", PODS).code == 200


def test_without_a_certificate_one_is_nobody_and_may_nothing(anybody: Wire) -> None:
    for method, path in (
        ("GET", PODS), ("POST", PODS), ("DELETE", f"{PODS}/p"), ("GET", "/api/v1/secrets"), ("GET", "/metrics"),
        ("GET", f"{PODS}?watch=1"), ("POST", f"{PODS}/p/binding"), ("PATCH", f"{PODS}/p"), ("GET", "/openapi/v3"),
        ("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews"), ("GET", "/logs/"), ("GET", "/debug/pprof/"),
    ):  # fmt: skip
        answer = anybody.ask(method, path, None if method == "GET" else b"{}")
        assert answer.code == 403, (method, path, answer)
        assert json.loads(answer.body)["reason"] == "Forbidden"
        assert "system:anonymous" in json.loads(answer.body)["message"]


def tokens(plane: Plane) -> dict[str, str]:
    key = (plane.directory / "pki" / "service-accounts.key").read_bytes()
    other = ec.generate_private_key(ec.SECP256R1())
    now = datetime.now(UTC)
    claims = {
        "iss": "https://kubernetes.default.svc", "sub": "system:serviceaccount:default:default", "nbf": now - timedelta(days=2),
        "iat": now - timedelta(days=2), "exp": now - timedelta(days=1), "aud": ["https://kubernetes.default.svc"],
        "kubernetes.io": {"namespace": "default", "serviceaccount": {"name": "default", "uid": "x"}},
    }  # fmt: skip
    fresh = claims | {"exp": now + timedelta(days=1)}
    nothing = base64.urlsafe_b64encode(b'{"alg":"none"}').decode().rstrip("=")
    return {
        "a word": "x",
        "nothing": "",
        "expired": jwt.encode(claims, key, "ES256"),
        "of nobody": jwt.encode(fresh | {"sub": "system:serviceaccount:none:none"}, key, "ES256"),
        "of another uid": jwt.encode(fresh, key, "ES256"),
        "signed by another": jwt.encode(fresh, other, "ES256"),
        "signed with the public key": jwt.encode(fresh, "x" * 64, "HS256"),
        "not signed": f"{nothing}.{base64.urlsafe_b64encode(json.dumps({'sub': 'admin'}).encode()).decode()}.",
        "three dots": "...",
        "letters that are none": "\xff\xfe",
        "long": "a" * 60_000,
        "cut": jwt.encode(fresh, key, "ES256")[:-5],
        "with a newline escaped": "a%0ab",
        "a join token": "abcdef.0123456789abcdef",
    }


def test_tokens_that_are_not_good_let_nobody_in(plane: Plane, anybody: Wire) -> None:
    for name, token in tokens(plane).items():
        answer = anybody.ask("GET", PODS, headers=[f"Authorization: Bearer {token}"])
        assert answer.code == (403 if name == "nothing" else 401), (name, answer)
        assert json.loads(answer.body)["kind"] == "Status"
    for header in ("Basic YWRtaW46YWRtaW4=", "Bearer", "bearer x", "Odd x", "Bearer a b", "Digest x", "Negotiate x"):
        answer = anybody.ask("GET", PODS, headers=[f"Authorization: {header}"])
        assert answer.code in (401, 403), (header, answer)


IMPERSONATIONS = (
    ["Impersonate-User: admin"],
    ["Impersonate-User: admin", "Impersonate-Group: system:masters"],
    ["Impersonate-Group: system:masters"],
    ["Impersonate-Extra-scopes: x"],
    ["Impersonate-Uid: x"],
    ["impersonate-user: system:admin"],
)


def test_nobody_may_speak_for_somebody_else_without_the_right(anybody: Wire, wire: Wire) -> None:
    for headers in IMPERSONATIONS:
        assert anybody.ask("GET", PODS, headers=headers).code in (400, 403), headers
    # One who may, speaking for one who may nothing, may nothing; and cannot speak for a third.
    assert wire.ask("GET", PODS, headers=["Impersonate-User: mallory"]).code == 403
    assert wire.ask("GET", PODS, headers=["Impersonate-Group: system:masters"]).code in (400, 403)
