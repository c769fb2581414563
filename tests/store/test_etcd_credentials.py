"""etcd's credentials are read from files once, and every mistake in them is one line."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    KeySerializationEncryption,
    NoEncryption,
    PrivateFormat,
)
from cryptography.x509.oid import NameOID

from situate.store.errors import InvalidRequestError
from situate.store.etcd.credentials import MAX_FILE_BYTES, etcd_credentials
from situate.store.etcd.settings import EtcdSettings

WHERE = "etcd://one:2379"


def make_pair(folder: Path, name: str) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    made = x509.CertificateBuilder(subject, subject, key.public_key(), 1, now, now + timedelta(days=1))
    (folder / f"{name}.crt").write_bytes(made.sign(key, hashes.SHA256()).public_bytes(Encoding.PEM))
    ways: dict[str, KeySerializationEncryption] = {"key": NoEncryption(), "locked": BestAvailableEncryption(b"secret")}
    for suffix, encryption in ways.items():
        written = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption)
        (folder / f"{name}.{suffix}").write_bytes(written)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("credentials")
    make_pair(made, "one")
    make_pair(made, "other")
    (made / "text").write_text("nothing of the kind\n")
    for name, text in {
        "user": "me:a secret: with a colon\n",
        "nobody": ":secret\n",
        "no secret": "me:\n",
        "two lines": "me:secret\nyou:secret\n",
        "no colon": "me\n",
        "shared": "me:secret\n",
        "readable": "me:secret\n",
    }.items():
        (made / name).write_text(text)
        (made / name).chmod({"shared": 0o620, "readable": 0o604}.get(name, 0o600))
    return made


def read(folder: Path, where: str = WHERE, **names: str) -> EtcdSettings | None:
    found = {what: folder / name for what, name in names.items()}
    return etcd_credentials(where, *(found.get(what) for what in ("ca", "certificate", "key", "user")))


def test_without_files_there_is_nothing_to_say_whatever_the_store(folder: Path) -> None:
    assert read(folder) is None
    assert read(folder, "memory") is None


@pytest.mark.parametrize("where", ["etcd://one:2379", "etcds://one:2379"])
def test_all_files_are_read(folder: Path, where: str) -> None:
    found = read(folder, where, ca="other.crt", certificate="one.crt", key="one.key", user="user")
    assert found is not None
    assert found.ca == (folder / "other.crt").read_bytes()
    assert found.certificate == (folder / "one.crt").read_bytes()
    assert found.key == (folder / "one.key").read_bytes()
    assert (found.username, found.password) == ("me", "a secret: with a colon")


def test_each_may_be_alone_but_a_certificate_has_its_key(folder: Path) -> None:
    for one in ({"ca": "other.crt"}, {"certificate": "one.crt", "key": "one.key"}, {"user": "user"}):
        found = read(folder, **one)
        assert found is not None
        given = {name for name in ("ca", "certificate", "key") if getattr(found, name) is not None}
        given |= {"user"} if found.username else set()
        assert given == one.keys()


@pytest.mark.parametrize(
    "names, why",
    [
        ({"ca": "none"}, "none cannot be read: No such file or directory$"),
        ({"ca": "text"}, "text has no certificates in PEM$"),
        ({"certificate": "one.crt"}, "^--etcd-certfile and --etcd-keyfile must be given together$"),
        ({"key": "one.key"}, "^--etcd-certfile and --etcd-keyfile must be given together$"),
        ({"certificate": "none", "key": "one.key"}, "none cannot be read: No such file or directory$"),
        ({"certificate": "one.crt", "key": "none"}, "none cannot be read: No such file or directory$"),
        ({"certificate": "text", "key": "one.key"}, "text and .*one.key are not a certificate and its key in PEM"),
        ({"certificate": "one.crt", "key": "text"}, "one.crt and .*text are not a certificate and its key in PEM"),
        ({"certificate": "one.crt", "key": "one.locked"}, "one.locked are not .* in PEM, without a password$"),
        ({"certificate": "one.crt", "key": "other.key"}, "^the key does not belong to the certificate in .*one.crt$"),
        ({"user": "none"}, "none cannot be read: No such file or directory$"),
        ({"user": "shared"}, "shared is readable by others; run chmod 600$"),
        ({"user": "readable"}, "readable is readable by others; run chmod 600$"),
        ({"user": "nobody"}, "nobody must have one line: name:password$"),
        ({"user": "no secret"}, "no secret must have one line: name:password$"),
        ({"user": "two lines"}, "two lines must have one line: name:password$"),
        ({"user": "no colon"}, "no colon must have one line: name:password$"),
    ],
)
def test_a_mistake_is_one_line(folder: Path, names: dict[str, str], why: str) -> None:
    with pytest.raises(InvalidRequestError, match=why):
        read(folder, **names)


@pytest.mark.parametrize("names", [{"ca": "one.crt"}, {"user": "user"}])
def test_they_are_for_etcd_only(folder: Path, names: dict[str, str]) -> None:
    with pytest.raises(InvalidRequestError, match="need a store on etcd: --store must begin with etcd:// or etcds://"):
        read(folder, "store.db", **names)


def test_a_file_has_a_largest_size(tmp_path: Path) -> None:
    user = tmp_path / "user"
    user.write_text("me:".ljust(MAX_FILE_BYTES, "x"))
    user.chmod(0o600)
    found = read(tmp_path, user="user")
    assert found is not None
    assert len(found.password) == MAX_FILE_BYTES - 3
    user.write_text("me:".ljust(MAX_FILE_BYTES + 1, "x"))
    with pytest.raises(InvalidRequestError, match=f"user is larger than {MAX_FILE_BYTES} bytes"):
        read(tmp_path, user="user")
