"""A server on an etcd that wants certificates, a name and a password: what it needs, and what it says without."""

from __future__ import annotations

import json
import shutil
import ssl
import urllib.request
from pathlib import Path

import pytest
from click.testing import CliRunner

from cli.commands.test_up import Desk
from situate.cli import main
from store.etcd_server import Etcd, missing
from store.test_etcd_servers import make_certificates

NEEDED = missing() or (None if shutil.which("openssl") else "certificates for etcd are made by openssl")


@pytest.mark.skipif(NEEDED is not None, reason=str(NEEDED))
def test_a_server_on_an_etcd_with_tls_and_a_password(tmp_path: Path) -> None:
    make_certificates(tmp_path)
    flags = [f"--cert-file={tmp_path / 'server.crt'}", f"--key-file={tmp_path / 'server.key'}", "--bcrypt-cost=4"]
    flags += [f"--trusted-ca-file={tmp_path / 'ca.crt'}", "--client-cert-auth"]
    known = ssl.create_default_context(cafile=str(tmp_path / "ca.crt"))
    known.load_cert_chain(tmp_path / "client.crt", tmp_path / "client.key")
    (tmp_path / "user").write_text("root:a secret: with a colon\n")
    (tmp_path / "user").chmod(0o600)
    desk = Desk(tmp_path)
    with Etcd(tmp_path, flags=flags, tls=known) as server:
        user = {"name": "root", "password": "a secret: with a colon"}
        _post(server, known, "auth/role/add", {"name": "root"})
        _post(server, known, "auth/user/add", user)
        _post(server, known, "auth/user/grant", {"user": "root", "role": "root"})
        _post(server, known, "auth/enable", {})
        certificates = ("--etcd-cafile", "ca.crt", "--etcd-certfile", "client.crt", "--etcd-keyfile", "client.key")
        store = ("up", "--port", "0", "--nodes", "1", "--store", f"etcd://{server.endpoints[0]}")
        try:
            desk.says(*store, *certificates, "--etcd-user-file", "user")
            assert "node-1" in desk.says("get", "nodes")
        finally:
            desk.run("down", "--delete")


def _post(server: Etcd, tls: ssl.SSLContext, path: str, body: dict[str, str]) -> None:
    request = urllib.request.Request(f"https://{server.endpoints[0]}/v3/{path}", json.dumps(body).encode())
    urllib.request.urlopen(request, timeout=5, context=tls).read()


@pytest.mark.parametrize(
    "flags, expected",
    [
        (["--etcd-cafile", "none"], "none cannot be read: No such file or directory"),
        (["--etcd-cafile", "text"], "text has no certificates in PEM"),
        (["--etcd-certfile", "text"], "--etcd-certfile and --etcd-keyfile must be given together"),
        (["--etcd-certfile", "text", "--etcd-keyfile", "text"], "text and text are not a certificate and its key"),
        (["--etcd-user-file", "open"], "open is readable by others; run chmod 600"),
        (["--etcd-user-file", "text"], "text must have one line: name:password"),
        (["--etcd-cafile", "text", "--store", "memory"], "need a store on etcd"),
    ],
)
def test_a_mistake_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flags: list[str], expected: str
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, mode in (("text", 0o600), ("open", 0o644)):
        (tmp_path / name).write_text("nothing of the kind\n")
        (tmp_path / name).chmod(mode)
    done = CliRunner().invoke(main, ["server", "--port", "0", "--store", "etcd://127.0.0.1:1", *flags])
    assert done.exit_code == 2
    assert expected in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
