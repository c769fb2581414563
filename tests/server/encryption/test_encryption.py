"""Encryption at rest: no plain text in any file, every value readable under every order of keys, whatever is killed."""

import asyncio
import base64
import json
import secrets
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from server.faults.process import NotStartedError, Plane
from server.faults.wire import Wire
from situate.server.encryption.config import read_encryption
from situate.server.encryption.providers import CannotDecryptError, Plain, Providers, aes_gcm
from situate.server.encryption.store import EncryptedStore
from situate.store.backup import BackupEntry, open_backup, verify_backup
from situate.store.entries import ABSENT, Revision
from situate.store.memory import MemoryStore
from situate.store.sqlite.store import SqliteStore
from situate.store.transactions import At, Committed, Put, Refused
from situate.wire.errors import InputError

PREFIX = "/objects/core/secrets/"
ONE, TWO = aes_gcm("one", bytes(32)), aes_gcm("two", bytes([1]) * 32)
TEXT = b'{"metadata":{"name":"a"},"data":{"k":"open-sesame"}}'


def config(path: Path, *providers: dict[str, Any], resources: tuple[str, ...] = ("secrets",)) -> Path:
    found = {"resources": list(resources), "providers": list(providers)}
    kind = {"apiVersion": "apiserver.config.k8s.io/v1", "kind": "EncryptionConfiguration", "resources": [found]}
    path.write_text(yaml.safe_dump(kind))
    path.chmod(0o600)
    return path


def key(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, **(more or {"secret": base64.b64encode(name[:1].encode() * 32).decode()})}


def gcm(*keys: dict[str, Any]) -> dict[str, Any]:
    return {"aesgcm": {"keys": list(keys)}}


# ── values ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_value_has_kubernetes_form_and_is_bound_to_its_key() -> None:
    value = ONE.encrypt(f"{PREFIX}a", TEXT)
    start = b"k8s:enc:aesgcm:v1:one:"
    assert value.startswith(start)
    nonce, rest = value[len(start) : len(start) + 12], value[len(start) + 12 :]
    assert AESGCM(bytes(32)).decrypt(nonce, rest, f"{PREFIX}a".encode()) == TEXT
    assert Providers([ONE]).decrypt(f"{PREFIX}a", value) == TEXT
    with pytest.raises(CannotDecryptError, match="the key 'one'"):
        Providers([ONE]).decrypt(f"{PREFIX}b", value)
    assert ONE.encrypt(f"{PREFIX}a", TEXT) != value


@pytest.mark.parametrize("spoiled", [-1, 30, 22])
def test_a_value_that_was_changed_is_not_read(spoiled: int) -> None:
    value = bytearray(ONE.encrypt("/a", TEXT))
    value[spoiled] ^= 1
    with pytest.raises(CannotDecryptError):
        Providers([TWO, ONE]).decrypt("/a", bytes(value))


def test_plain_values_are_read_only_where_identity_says_so() -> None:
    assert Providers([ONE, Plain()]).decrypt("/a", TEXT) == TEXT
    with pytest.raises(CannotDecryptError, match="add identity"):
        Providers([ONE]).decrypt("/a", TEXT)


# ── the store ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_everything_that_a_store_returns_is_decrypted_and_nothing_below_it_is() -> None:
    async def story() -> None:
        inner = MemoryStore()
        store = EncryptedStore(inner, {PREFIX: Providers([ONE])})
        watch = store.watch("/", Revision(1))
        name, other = f"{PREFIX}d/a", "/objects/core/configmaps/d/a"
        made = await store.commit([At(name, ABSENT)], [Put(name, TEXT), Put(other, TEXT)])
        assert isinstance(made, Committed)
        (below,) = (await inner.read([name])).entries
        assert below is not None
        assert b"sesame" not in below.value
        assert [entry.value for entry in (await store.scan("/")).entries] == [TEXT, TEXT]
        (read,) = (await store.read([name])).entries
        assert read is not None
        assert read.value == TEXT
        batch = await anext(watch)
        assert [event.entry.value for event in batch.events if event.entry] == [TEXT, TEXT]
        refused = await store.commit([At(name, ABSENT)], [Put(name, b"")])
        assert isinstance(refused, Refused)
        assert refused.found[0] is not None
        assert refused.found[0].value == TEXT
        await store.commit([], [Put(name, b"2")])
        (event,) = (await anext(watch)).events
        assert event.before is not None
        assert event.before.value == TEXT
        await watch.aclose()
        await store.aclose()

    asyncio.run(story())


ROTATES = """
import asyncio, os, signal, sys
from pathlib import Path
from situate.server.encryption.providers import Providers, Plain, aes_gcm
from situate.server.encryption.store import EncryptedStore
from situate.store.sqlite.store import SqliteStore
async def main():
    inner = await SqliteStore.open(Path(sys.argv[1]))
    real, left = inner.commit, [20]
    async def commit(guards, writes):
        left[0] -= 1
        if not left[0]:
            os.kill(os.getpid(), signal.SIGKILL)
        return await real(guards, writes)
    inner.commit = commit
    one, two = aes_gcm("one", bytes(32)), aes_gcm("two", bytes([1]) * 32)
    await EncryptedStore(inner, {"/objects/core/secrets/": Providers([two, one, Plain()])}).rewrite()
asyncio.run(main())
"""


def test_kill_9_in_a_rotation_leaves_everything_readable_and_the_next_one_finishes_it(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    names = [f"{PREFIX}d/{number:03}" for number in range(50)]

    async def fill() -> None:
        store = EncryptedStore(await SqliteStore.open(path), {PREFIX: Providers([ONE])})
        for name in names:
            await store.commit([], [Put(name, name.encode())])
        await store.aclose()

    async def after() -> None:
        inner = await SqliteStore.open(path)
        store = EncryptedStore(inner, {PREFIX: Providers([TWO, ONE, Plain()])})
        assert [(entry.key, entry.value) for entry in (await store.scan(PREFIX)).entries] == [
            (name, name.encode()) for name in names
        ]
        by_two = [TWO.wrote(entry.value) for entry in (await inner.scan(PREFIX)).entries]
        assert by_two == [True] * 19 + [False] * 31
        assert await store.rewrite() == 0
        assert store.stale == 0
        assert all(TWO.wrote(entry.value) for entry in (await inner.scan(PREFIX)).entries)
        alone = EncryptedStore(inner, {PREFIX: Providers([TWO])})
        assert [entry.value for entry in (await alone.scan(PREFIX)).entries] == [name.encode() for name in names]
        revision = await inner.revision()
        await store.rewrite()
        assert await inner.revision() == revision
        await store.aclose()

    asyncio.run(fill())
    done = subprocess.run([sys.executable, "-c", ROTATES, str(path)], check=False)
    assert done.returncode == -signal.SIGKILL
    asyncio.run(after())


# ── the configuration ───────────────────────────────────────────────────────────────────────────────────────────────


def test_a_key_comes_from_the_configuration_a_file_or_a_command(tmp_path: Path) -> None:
    text = base64.b64encode(secrets.token_bytes(32)).decode()
    (tmp_path / "key").write_text(f"{text}\n")
    (tmp_path / "key").chmod(0o600)
    for more in ({"secret": text}, {"secretFile": "key"}, {"secretCommand": ["echo", text]}):
        found = read_encryption(config(tmp_path / "config", gcm(key("k", **more)), resources=("secrets", "configmaps")))
        assert set(found) == {PREFIX, "/objects/core/configmaps/"}
        value = aes_gcm("k", base64.b64decode(text)).encrypt("/a", TEXT)
        assert found[PREFIX].decrypt("/a", value) == TEXT


@pytest.mark.parametrize(
    "provider, said",
    [
        ({"secretbox": {"keys": []}}, "secretbox is not supported; use aesgcm or identity"),
        ({"kms": {}}, "kms is not supported"),
        ({"rot13": {}}, "rot13 is not a provider"),
        (gcm({"name": "k"}), "needs one of secret, secretFile and secretCommand"),
        (gcm({"name": "k", "secret": "AAAA"}), "has 3 bytes; it needs 16, 24 or 32"),
        (gcm({"name": "k", "secret": "?"}), "is not base64"),
        (gcm({"name": "a:b", "secret": "AAAA"}), "needs a name without a colon"),
        (gcm({"name": "k", "secretCommand": ["false"]}), "its command failed with exit code 1"),
        (gcm({"name": "k", "secretCommand": ["/nowhere"]}), "its command cannot be run"),
        (gcm({"name": "k", "secretFile": "absent"}), "absent cannot be read"),
        (gcm({"nom": "k"}), "aesgcm: Object contains unknown field `nom`"),
    ],
)
def test_a_configuration_that_cannot_be_used_is_one_line(tmp_path: Path, provider: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError) as caught:
        read_encryption(config(tmp_path / "config", provider))
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_what_is_said_of_a_damaged_configuration_has_no_key(tmp_path: Path) -> None:
    path = tmp_path / "encryption.yaml"
    path.write_text('kind: EncryptionConfiguration\nkeys:\n- secret: "c2VjcmV0" x\n')
    path.chmod(0o600)
    with pytest.raises(InputError) as refused:
        read_encryption(path)
    assert str(refused.value) == f"{path} is not an EncryptionConfiguration: it is not YAML in line 3"


def test_a_configuration_that_others_can_read_is_refused(tmp_path: Path) -> None:
    path = config(tmp_path / "config", gcm(key("k")))
    path.chmod(0o644)
    with pytest.raises(InputError, match="readable by others"):
        read_encryption(path)
    with pytest.raises(InputError, match="no resource"):
        read_encryption(config(tmp_path / "other", gcm(key("k")), resources=("*.*",)))


# ── a server ────────────────────────────────────────────────────────────────────────────────────────────────────────

SECRETS = "/api/v1/namespaces/default/secrets"
WITHIN_S = 30.0
WORD = "open-sesame-0123456789"


def secret(name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": {"k": WORD}}


def with_word(folder: Path) -> list[str]:
    """The files that have the secret, as text or as the API's base64."""
    words = (WORD.encode(), base64.b64encode(WORD.encode()))
    found = [path for path in folder.rglob("*") if path.is_file() and any(word in path.read_bytes() for word in words)]
    return sorted(path.name for path in found)


def test_no_file_of_a_server_or_backup_has_the_secret_and_keys_can_be_changed(tmp_path: Path) -> None:
    path = tmp_path / "encryption.yaml"
    plane = Plane(tmp_path / "plane", "--encryption-provider-config", str(path))
    config(path, gcm(key("a")), {"identity": {}})
    with plane, Wire(plane.port, plane.admin()) as wire:
        assert wire.send("POST", SECRETS, secret("one")).code == 201
        found = json.loads(wire.ask("GET", f"{SECRETS}/one").body)
        assert base64.b64decode(found["data"]["k"]).decode() == WORD
        assert with_word(tmp_path) == []
        back_up = [sys.executable, "-m", "situate", "backup", str(tmp_path / "backup"), "--dir", str(plane.directory)]
        subprocess.run(back_up, check=True, capture_output=True)
    assert verify_backup(tmp_path / "backup")[1].entries > 10
    with open_backup(tmp_path / "backup") as (_, parts):
        values = [part.value for part in parts if isinstance(part, BackupEntry)]
    assert not [value for value in values if base64.b64encode(WORD.encode()) in value]
    assert with_word(tmp_path) == []
    # A new key first: at the next start, everything is encrypted anew. Then the old key can go.
    config(path, gcm(key("b"), key("a")))
    with plane, Wire(plane.port, plane.admin()) as wire:
        deadline = time.monotonic() + WITHIN_S
        while "Stored values are encrypted with the first key now" not in plane.said():
            assert time.monotonic() < deadline
            time.sleep(0.05)
        assert b"situate_encryption_stale_values 0" in wire.ask("GET", "/metrics").body
    config(path, gcm(key("b")))
    with plane, Wire(plane.port, plane.admin()) as wire:
        found = json.loads(wire.ask("GET", f"{SECRETS}/one").body)
        assert base64.b64decode(found["data"]["k"]).decode() == WORD
    # Without the key the server starts, and serves everything else.
    config(path, gcm(key("c")))
    with plane, Wire(plane.port, plane.admin()) as wire:
        assert wire.ask("GET", f"{SECRETS}/one").code == 500
        assert wire.ask("GET", "/api/v1/namespaces/default/configmaps").code == 200
        assert "is encrypted with the key 'b', which the configuration does not have" in plane.said()
    path.unlink()
    with pytest.raises(NotStartedError, match=r"encryption\.yaml cannot be read"):
        plane.start()
