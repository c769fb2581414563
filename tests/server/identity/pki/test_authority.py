import ssl
import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from situate.server.identity.pki import authority as authority_module
from situate.server.identity.pki import certificates
from situate.server.identity.pki.authority import Authority, open_authority
from situate.server.identity.secret_files import IdentityError

NOW = datetime(2026, 11, 15, 12, tzinfo=UTC)
FILES = ("ca.crt", "ca.key", "service-accounts.key")


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return open_authority(tmp_path / "pki", NOW)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def test_first_start_makes_an_authority_that_only_its_owner_can_read(authority: Authority) -> None:
    assert mode(authority.folder) == 0o700
    assert [mode(authority.folder / name) for name in FILES] == [0o644, 0o600, 0o600]
    assert isinstance(authority.key.curve, ec.SECP256R1)
    life = authority.certificate.not_valid_after_utc - NOW
    assert life == timedelta(days=3650)
    assert sorted(path.name for path in authority.folder.parent.iterdir()) == ["pki"]


def test_the_next_start_finds_the_same_authority(authority: Authority) -> None:
    before = contents(authority.folder)
    again = open_authority(authority.folder, NOW + timedelta(days=30))
    assert again.certificate == authority.certificate
    assert contents(authority.folder) == before


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(lambda old: old[: len(old) // 2], id="torn"),
        pytest.param(lambda old: b"", id="empty"),
        pytest.param(lambda old: b"\xff\xfe\x00", id="not text"),
        pytest.param(lambda old: b"hello\n", id="something else"),
    ],
)
def test_a_damaged_file_is_told_in_one_line_and_left_alone(authority: Authority, name: str, damage: object) -> None:
    path = authority.folder / name
    path.write_bytes(damage(path.read_bytes()))  # type: ignore[operator]
    before = contents(authority.folder)
    with pytest.raises(IdentityError) as raised:
        open_authority(authority.folder, NOW)
    assert str(path) in str(raised.value)
    assert "\n" not in str(raised.value)
    assert contents(authority.folder) == before


@pytest.mark.parametrize("name", FILES)
def test_a_missing_file_is_not_made_anew(authority: Authority, name: str) -> None:
    (authority.folder / name).unlink()
    with pytest.raises(IdentityError, match="is missing"):
        open_authority(authority.folder, NOW)
    assert not (authority.folder / name).exists()


def test_the_key_of_another_authority_is_refused(authority: Authority, tmp_path: Path) -> None:
    other = open_authority(tmp_path / "other", NOW)
    (authority.folder / "ca.key").write_bytes((other.folder / "ca.key").read_bytes())
    with pytest.raises(IdentityError, match="do not match"):
        open_authority(authority.folder, NOW)


def test_a_key_that_others_can_read_is_refused(authority: Authority) -> None:
    (authority.folder / "ca.key").chmod(0o640)
    with pytest.raises(IdentityError, match=r"is readable by others \(mode 0640\)"):
        open_authority(authority.folder, NOW)


def test_an_authority_that_has_ended_is_told(authority: Authority) -> None:
    with pytest.raises(IdentityError, match="expired on 2036"):
        open_authority(authority.folder, NOW + timedelta(days=3651))


def test_a_start_that_failed_half_way_leaves_no_authority(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> bytes:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(certificates, "authority_certificate", fail)
    with pytest.raises(OSError, match="No space"):
        open_authority(tmp_path / "pki", NOW)
    assert list(tmp_path.iterdir()) == []


def test_two_first_starts_at_once_agree_on_one_authority(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "pki"
    make = certificates.authority_certificate
    inside: list[Authority] = []

    def race(key: ec.EllipticCurvePrivateKey, now: datetime) -> x509.Certificate:
        if not inside:
            monkeypatch.setattr(certificates, "authority_certificate", make)
            inside.append(open_authority(folder, NOW))
        return make(key, now)

    monkeypatch.setattr(certificates, "authority_certificate", race)
    assert open_authority(folder, NOW).certificate == inside[0].certificate
    assert list(tmp_path.iterdir()) == [folder]


# ── the server's certificate ─────────────────────────────────────────────────────────────────────────────────────────


def served(path: Path) -> x509.Certificate:
    return x509.load_pem_x509_certificate(path.read_bytes())


def names(certificate: x509.Certificate) -> set[str]:
    held = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return {*held.get_values_for_type(x509.DNSName), *map(str, held.get_values_for_type(x509.IPAddress))}


def test_the_server_is_known_by_all_its_names(authority: Authority) -> None:
    path = authority.server_certificate(["situate.example.com", "10.0.0.1", "0:0:0:0:0:0:0:2"], NOW)
    wanted = "localhost 127.0.0.1 ::1 kubernetes kubernetes.default kubernetes.default.svc".split()
    assert {*wanted, "situate.example.com", "10.0.0.1", "::2"} <= names(served(path))
    assert mode(path) == 0o600
    assert served(path).not_valid_after_utc - NOW == timedelta(days=365)


def test_the_certificate_stays_until_a_third_of_its_life_is_left(authority: Authority) -> None:
    first = served(authority.server_certificate([], NOW))
    assert served(authority.server_certificate([], NOW + timedelta(days=243))) == first
    later = served(authority.server_certificate([], NOW + timedelta(days=244)))
    assert later != first
    assert later.not_valid_after_utc > first.not_valid_after_utc


def test_a_new_name_makes_a_new_certificate_that_keeps_the_old_names(authority: Authority) -> None:
    authority.server_certificate(["a.example.com"], NOW)
    both = served(authority.server_certificate(["b.example.com"], NOW))
    assert {"a.example.com", "b.example.com"} <= names(both)
    assert served(authority.server_certificate(["a.example.com"], NOW)) == both


def test_the_certificate_of_somebody_else_is_not_written_over(authority: Authority, tmp_path: Path) -> None:
    other = open_authority(tmp_path / "other", NOW)
    path = authority.folder / "server.pem"
    path.write_bytes(other.server_certificate([], NOW).read_bytes())
    path.chmod(0o600)
    before = path.read_bytes()
    with pytest.raises(IdentityError, match="was not signed by"):
        authority.server_certificate([], NOW)
    assert path.read_bytes() == before


def test_nothing_outlives_the_authority(authority: Authority) -> None:
    late = NOW + timedelta(days=3600)
    assert (
        served(authority.server_certificate([], late)).not_valid_after_utc == authority.certificate.not_valid_after_utc
    )


# ── clients ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_client_certificate_has_the_user_as_cn_and_groups_as_o(authority: Authority) -> None:
    made = x509.load_pem_x509_certificate(authority.client("jane", ["dev", "ops"], NOW).certificate)
    assert [one.value for one in made.subject.get_attributes_for_oid(NameOID.COMMON_NAME)] == ["jane"]
    assert [one.value for one in made.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)] == ["dev", "ops"]
    made.verify_directly_issued_by(authority.certificate)


def test_certificates_are_valid_on_a_clock_that_is_set_back_an_hour(authority: Authority) -> None:
    earlier = NOW - timedelta(hours=1)
    assert authority.certificate.not_valid_before_utc < earlier
    assert served(authority.server_certificate([], NOW)).not_valid_before_utc < earlier


def test_the_servers_key_must_be_its_own(authority: Authority) -> None:
    path = authority.server_certificate([], NOW)
    text = path.read_bytes()
    path.write_bytes(text[: text.index(b"-----BEGIN PRIVATE KEY")] + certificates.key_pem(certificates.new_key()))
    with pytest.raises(IdentityError, match="its certificate and its key do not match"):
        authority.server_certificate([], NOW)


@pytest.mark.parametrize("host, named", [("machine", True), ("größe", False), ("", False)])
def test_the_machines_name_is_one_of_the_servers_if_a_certificate_can_have_it(
    authority: Authority, monkeypatch: pytest.MonkeyPatch, host: str, named: bool
) -> None:
    monkeypatch.setattr("socket.gethostname", lambda: host)
    made = served(authority.server_certificate(["a.example"], NOW))
    names = made.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    found = names.get_values_for_type(x509.DNSName)
    assert (host in found) == named
    assert {"localhost", "kubernetes.default.svc", "a.example"} <= set(found)


def test_an_authority_is_good_up_to_its_last_second(authority: Authority) -> None:
    end = authority.certificate.not_valid_after_utc
    assert open_authority(authority.folder, end).certificate == authority.certificate
    with pytest.raises(IdentityError, match="expired on"):
        open_authority(authority.folder, end + timedelta(seconds=1))


def test_a_new_authority_is_durable_in_folders_that_are_made_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[tuple[Path, bool]] = []
    folder = tmp_path / "a" / "b" / "pki"
    monkeypatch.setattr(authority_module, "sync_folder", lambda path: synced.append((path, folder.exists())))
    open_authority(folder, NOW)
    assert synced == [(folder.parent, True)]


def test_a_connection_is_tls_1_2_with_http_and_a_certificate_if_the_client_has_one(authority: Authority) -> None:
    context = authority.tls([], NOW)
    assert context.verify_mode == ssl.CERT_OPTIONAL
    assert context.minimum_version == ssl.TLSVersion.TLSv1_2
    assert context.num_tickets == 0
    assert context.options & ssl.OP_NO_COMPRESSION
    assert context.options & ssl.OP_NO_RENEGOTIATION
    assert len(context.get_ca_certs()) == 1


def test_a_renewal_keeps_the_names_and_the_next_start_keeps_the_certificate(authority: Authority) -> None:
    first = served(authority.server_certificate([], NOW))
    second = served(authority.renew_server([], NOW))
    assert second != first
    assert names(second) == names(first)
    assert served(authority.server_certificate([], NOW)) == second


def test_a_server_certificate_without_names_is_renewed(authority: Authority) -> None:
    key = certificates.new_key()
    bare = certificates.client_certificate(
        authority.certificate, authority.key, certificates.subject("x"), key.public_key(), NOW
    )
    path = authority.folder / "server.pem"
    path.write_bytes(certificates.pem(bare) + certificates.key_pem(key))
    path.chmod(0o600)
    assert "localhost" in names(served(authority.server_certificate([], NOW)))


def test_a_certificate_that_cannot_be_read_is_told(authority: Authority) -> None:
    (authority.folder / "ca.crt").unlink()
    (authority.folder / "ca.crt").mkdir()
    with pytest.raises(IdentityError, match=r"ca\.crt cannot be read: Is a directory"):
        open_authority(authority.folder, NOW)
