"""The programs that envtest starts, as it starts them: as processes, with files that it made."""

import contextlib
import os
import signal
import socket
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import jwt
import msgspec
import pytest
from click.testing import CliRunner

from situate.cli import main
from situate.server.identity.pki import certificates
from situate.server.identity.pki.authority import Authority

WITHIN_S = 30.0
ISSUER = "https://127.0.0.1:1/"


@pytest.fixture
def assets(tmp_path: Path) -> Path:
    folder = tmp_path / "assets with spaces"
    said = CliRunner().invoke(main, ["envtest", "assets", str(folder)])
    assert said.exit_code == 0
    assert "KUBEBUILDER_ASSETS=" in said.output
    return folder


class EnvtestFiles:
    """What envtest writes into its directory before it starts an API server."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self.folder = folder
        now, key = datetime.now(UTC), certificates.new_key()
        self.authority = Authority(folder, certificates.authority_certificate(key, now), key)
        made, server_key = certificates.server_certificate(
            self.authority.certificate, key, ["localhost", "127.0.0.1"], now
        )
        self._write("apiserver.crt", certificates.pem(made))
        self._write("apiserver.key", certificates.key_pem(server_key))
        self.client_ca = self._write("client-ca.crt", self.authority.pem)
        self.signing_key = certificates.new_key()
        self.signer = self._write("sa-signer.key", certificates.key_pem(self.signing_key))

    def _write(self, name: str, content: bytes) -> Path:
        path = self.folder / name
        path.write_bytes(content)
        return path

    def tls(self, user: str = "", *groups: str) -> ssl.SSLContext:
        context = ssl.create_default_context(cadata=self.authority.pem.decode())
        if user:
            credential = self.authority.client(user, groups, datetime.now(UTC))
            context.load_cert_chain(self._write(f"{user}.pem", credential.certificate + credential.key))
        return context


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@contextlib.contextmanager
def started(*command: str | Path) -> Iterator[None]:
    """It must end well after SIGTERM."""
    process = subprocess.Popen([str(part) for part in command], stderr=subprocess.DEVNULL)
    try:
        yield
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(WITHIN_S) == 0


def ask(url: str, tls: ssl.SSLContext | None, body: bytes | None = None, token: str = "") -> tuple[int, bytes]:
    headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {token}"} if token else {})
    request = urllib.request.Request(url, data=body, headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=5, context=tls) as response:
            return response.status, response.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


def until_healthy(url: str, tls: ssl.SSLContext | None) -> None:
    end = time.monotonic() + WITHIN_S
    while True:
        with contextlib.suppress(OSError):
            if ask(url, tls)[0] == 200:
                return
        assert time.monotonic() < end, f"{url} does not answer"
        time.sleep(0.05)


def test_a_program_says_what_flags_it_has(assets: Path) -> None:
    """envtest looks for flags of old versions in it."""
    for program in ("kube-apiserver", "etcd"):
        said = subprocess.run([assets / program, "--help"], capture_output=True, text=True, check=True)
        assert "--insecure-port" not in said.stdout


def test_the_api_with_certificates_keys_and_tokens_of_others(assets: Path, tmp_path: Path) -> None:
    files, etcd, port = EnvtestFiles(tmp_path / "certs"), free_port(), free_port()
    tokens = tmp_path / "tokens.csv"
    tokens.write_text('secret-token,alice,1,"system:masters,others"\n')
    url = f"https://127.0.0.1:{port}"
    flags = [
        f"--etcd-servers=http://127.0.0.1:{etcd}",
        f"--cert-dir={files.folder}",
        f"--secure-port={port}",
        "--bind-address=127.0.0.1",
        f"--client-ca-file={files.client_ca}",
        f"--token-auth-file={tokens}",
        "--authorization-mode=RBAC",
        "--service-cluster-ip-range=10.0.0.0/24",
        "--allow-privileged=true",
        "--disable-admission-plugins=ServiceAccount",
        f"--service-account-issuer={ISSUER}",
        f"--service-account-key-file={files.signer}",
        f"--service-account-signing-key-file={files.signer}",
    ]
    with started(assets / "etcd", f"--listen-client-urls=http://127.0.0.1:{etcd}", f"--data-dir={tmp_path}"):
        until_healthy(f"http://127.0.0.1:{etcd}/health", None)
        with started(assets / "kube-apiserver", *flags):
            anyone = files.tls()
            until_healthy(f"{url}/healthz", anyone)
            assert ask(f"{url}/api/v1/namespaces", anyone)[0] == 403
            assert ask(f"{url}/api/v1/namespaces", files.tls("bob"))[0] == 403
            admin = files.tls("admin", "system:masters")
            assert ask(f"{url}/api/v1/namespaces", admin)[0] == 200
            assert ask(f"{url}/api/v1/namespaces", anyone, token="secret-token")[0] == 200
            account = b'{"metadata":{"name":"robot"}}'
            assert ask(f"{url}/api/v1/namespaces/default/serviceaccounts", admin, account)[0] == 201
            code, said = ask(f"{url}/api/v1/namespaces/default/serviceaccounts/robot/token", admin, b'{"spec":{}}')
            assert code == 201
            token = msgspec.json.decode(said)["status"]["token"]
            claims = jwt.decode(token, files.signing_key.public_key(), ["ES256"], audience=ISSUER, issuer=ISSUER)
            assert claims["sub"] == "system:serviceaccount:default:robot"
            pod = b'{"metadata":{"name":"p"},"spec":{"containers":[{"name":"c","image":"i"}]}}'
            assert ask(f"{url}/api/v1/namespaces/default/pods", admin, pod)[0] == 201  # no account `default` is needed


def run_apiserver(*flags: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "situate", "envtest", "kube-apiserver", *flags]
    return subprocess.run(command, capture_output=True, text=True, timeout=WITHIN_S, env={**os.environ}, check=False)


@pytest.mark.parametrize(
    "flags, says",
    [
        pytest.param(["--no-such-flag=1"], "--no-such-flag is not a flag of kube-apiserver", id="an unknown flag"),
        pytest.param(["stray"], "stray is not a flag of kube-apiserver", id="a word that belongs to no flag"),
        pytest.param(["--authorization-mode=ABAC"], "--authorization-mode has ABAC", id="an unknown authorizer"),
        pytest.param(["--tls-cert-file=/dev/null"], "must be given together", id="a certificate without a key"),
        pytest.param(["--etcd-servers=http://127.0.0.1:9"], "does not answer", id="an etcd that does not answer"),
        pytest.param(["--client-ca-file=/dev/null"], "cannot be read as certificates", id="an empty authority"),
        pytest.param(["--service-account-signing-key-file=/dev/null"], "no private key", id="an empty key"),
    ],
)
def test_bad_flags_are_one_line(tmp_path: Path, flags: list[str], says: str) -> None:
    said = run_apiserver(f"--cert-dir={tmp_path}", "--secure-port=0", *flags)
    assert said.returncode == 2
    assert says in said.stderr
    assert said.stderr.count("\n") == 1


def test_a_flag_without_effect_is_said(tmp_path: Path) -> None:
    said = run_apiserver(f"--cert-dir={tmp_path}", "--feature-gates", "A=true", "--authorization-mode=ABAC")
    assert "--feature-gates has no effect here" in said.stderr
