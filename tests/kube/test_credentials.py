"""Credentials that are rewritten, expire, are made by programs that misbehave, or are no credentials."""

import asyncio
import json
import os
import signal
import ssl
import stat
import sys
import tempfile
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar

import pytest
import uvloop
from cryptography.hazmat.primitives import serialization

from kube.fake_server import FakeServer
from situate.kube import exec_credentials
from situate.kube.access import Fixed
from situate.kube.client import Client
from situate.kube.credentials import REREAD_S, TokenFile, WithFiles, basic, bearer
from situate.kube.errors import NO_CREDENTIALS, ApiError
from situate.kube.exec_credentials import ExecCredentials, Plugin
from situate.kube.tls import BadPemError, Pair, TlsFiles, client_context, show

DATA = Path(__file__).parents[1] / "loop" / "data"
V1 = "client.authentication.k8s.io/v1"
CLIENT = (DATA / "client.pem").read_bytes()
OTHER = (DATA / "localhost.pem").read_bytes()

Result = TypeVar("Result")


def run(work: Coroutine[Any, Any, Result]) -> Result:
    async def within() -> Result:
        async with asyncio.timeout(20):
            return await work

    return asyncio.run(within())


class Clock:
    now = 1_000.0

    def __call__(self) -> float:
        return self.now


def asking_for_certificates() -> ssl.SSLContext:
    """A server that speaks only to clients of our authority."""
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(DATA / "localhost.pem")
    tls.load_verify_locations(DATA / "ca.pem")
    tls.verify_mode = ssl.CERT_REQUIRED
    return tls


async def problem(work: Coroutine[Any, Any, object]) -> str:
    with pytest.raises(ApiError) as caught:
        await work
    assert (caught.value.status, caught.value.reason, caught.value.sent) == (0, NO_CREDENTIALS, False)
    assert "\n" not in str(caught.value)
    return str(caught.value)


# -- tokens ------------------------------------------------------------------------------------------------------------


def test_headers_are_made_as_rfc_6750_and_7617_have_them() -> None:
    assert bearer("abc.def") == "Bearer abc.def"
    assert basic("bob", "s:ecret") == "Basic Ym9iOnM6ZWNyZXQ="


@pytest.mark.parametrize("token", ["", "two words", "line\nbreak", "ümlaut", "x" * 100_000], ids=str.__len__)
def test_what_no_header_can_hold_is_no_token(token: str) -> None:
    with pytest.raises(ValueError, match="is not a token"):
        bearer(token)


def test_a_token_file_is_read_again_each_minute(tmp_path: Path) -> None:
    clock, path = Clock(), tmp_path / "token"
    path.write_text("first\n")

    async def work() -> None:
        token = TokenFile(str(path), clock=clock)
        assert await token.header() == "Bearer first"
        path.write_text("second\n")
        clock.now += REREAD_S - 1
        assert await token.header() == "Bearer first"
        clock.now += 1
        assert await token.header() == "Bearer second"
        assert token.version == 2

    run(work())


def test_a_refused_token_is_looked_up_at_once(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text("first")

    async def work() -> None:
        token = TokenFile(str(path), clock=Clock())
        await token.header()
        seen = token.version
        assert await token.renew(seen) is False
        path.write_text("second")
        assert await token.renew(seen) is True
        assert await token.renew(seen) is True  # somebody else has renewed it already
        assert await token.header() == "Bearer second"

    run(work())


def test_while_the_file_cannot_be_read_the_last_token_is_shown(tmp_path: Path) -> None:
    clock, path = Clock(), tmp_path / "token"
    path.write_text("first")

    async def work() -> None:
        token = TokenFile(str(path), clock=clock)
        await token.header()
        for broken in ("", "two words"):
            path.write_text(broken)
            clock.now += REREAD_S
            assert await token.header() == "Bearer first"
        path.unlink()
        clock.now += REREAD_S
        assert await token.header() == "Bearer first"

    run(work())


def test_a_token_file_that_never_was_is_one_clear_line_until_it_is_there(tmp_path: Path) -> None:
    path = tmp_path / "token"

    async def work() -> None:
        token = TokenFile(str(path), clock=Clock())
        assert await problem(token.header()) == f"token file {path}: No such file or directory"
        path.write_text("")
        assert await problem(token.header()) == f"token file {path}: holds no token"
        path.write_text("here")
        assert await token.header() == "Bearer here"
        assert await TokenFile("/no/such/file", "given").header() == "Bearer given"

    run(work())


# -- certificates in files ---------------------------------------------------------------------------------------------


def test_a_replaced_client_certificate_is_loaded_and_makes_new_connections(tmp_path: Path) -> None:
    clock, path = Clock(), tmp_path / "client.pem"
    path.write_bytes(CLIENT)

    async def work() -> None:
        context = client_context((DATA / "ca.pem").read_bytes())
        shown = WithFiles(Fixed(None), TlsFiles(context, clock, certificate=str(path), key=str(path)))
        assert await shown.header() is None
        path.write_bytes(OTHER)
        await shown.header()
        assert shown.certificate == 0
        clock.now += 60
        await shown.header()
        assert (shown.version, shown.certificate) == (1, 1)
        clock.now += 60
        await shown.header()
        assert shown.certificate == 1

    run(work())


def test_a_certificate_half_written_changes_nothing_and_is_looked_at_again(tmp_path: Path) -> None:
    clock, path = Clock(), tmp_path / "client.pem"
    path.write_bytes(CLIENT)
    files = TlsFiles(client_context(b""), clock, certificate=str(path), key=str(path))
    path.write_bytes(OTHER[:700])
    clock.now += 60
    assert files.refresh() is False
    path.write_bytes(OTHER)
    clock.now += 60
    assert files.refresh() is True


def test_a_refused_certificate_is_looked_up_at_once(tmp_path: Path) -> None:
    path = tmp_path / "client.pem"
    path.write_bytes(CLIENT)

    async def work() -> None:
        shown = WithFiles(Fixed(None), TlsFiles(client_context(b""), Clock(), certificate=str(path), key=str(path)))
        assert await shown.renew(0) is False
        path.write_bytes(OTHER)
        assert await shown.renew(0) is True
        assert await shown.renew(0) is True
        assert await shown.renew(1) is False

    run(work())


def test_a_replaced_authority_is_trusted(tmp_path: Path) -> None:
    clock, path = Clock(), tmp_path / "ca.crt"
    path.write_bytes((DATA / "other-ca.pem").read_bytes())
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(DATA / "localhost.pem")

    async def work() -> None:
        context = client_context(path.read_bytes())
        shown = WithFiles(Fixed(None), TlsFiles(context, clock, authority=str(path)))
        async with FakeServer(tls) as server, Client(server.access(tls=context, credentials=shown)) as client:
            with pytest.raises(ApiError, match="not trusted"):
                await client.request("GET", "/api/v1/pods")
            path.write_bytes((DATA / "ca.pem").read_bytes())
            clock.now += 60
            assert await client.request("GET", "/api/v1/pods")

    run(work())


def test_keys_are_in_files_that_only_we_can_read_and_only_for_a_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[Path, int]] = []

    class Watched(ssl.SSLContext):
        def load_cert_chain(self, certfile: Any, keyfile: Any = None, password: Any = None) -> None:
            for name in (certfile, keyfile):
                seen.append((Path(name), stat.S_IMODE(Path(name).stat().st_mode)))
            super().load_cert_chain(certfile, keyfile, password)

    show(Watched(ssl.PROTOCOL_TLS_CLIENT), Pair(CLIENT, CLIENT))
    assert [mode for _, mode in seen] == [0o600, 0o600]
    assert not any(path.exists() for path, _ in seen)


@pytest.mark.parametrize(
    "pair, words",
    [
        (Pair(CLIENT, OTHER), "the key does not belong to the certificate"),
        (Pair(OTHER, CLIENT), "the key does not belong to the certificate"),
        (Pair(b"nonsense", b"nonsense"), "no PEM certificate and key"),
        (Pair(b"", b""), "no PEM certificate and key"),
        (Pair(CLIENT, (DATA / "ca.pem").read_bytes()), "no PEM certificate and key"),
    ],
)
def test_a_bad_pair_is_refused_in_words_and_the_good_one_stays(pair: Pair, words: str) -> None:
    context = client_context((DATA / "ca.pem").read_bytes())
    show(context, Pair(CLIENT, CLIENT))
    with pytest.raises(BadPemError, match=words):
        show(context, pair)

    async def work() -> None:
        async with FakeServer(asking_for_certificates()) as server, Client(server.access(tls=context)) as client:
            assert await client.request("GET", "/api/v1/pods")

    run(work())


def test_an_encrypted_key_is_refused_and_nobody_is_asked_for_its_password() -> None:
    encryption = serialization.BestAvailableEncryption(b"secret")
    encrypted = serialization.load_pem_private_key(CLIENT, None).private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, encryption
    )
    with pytest.raises(BadPemError, match="the key is encrypted"):
        show(client_context(b""), Pair(CLIENT, encrypted))


# -- programs ----------------------------------------------------------------------------------------------------------


def credential(api_version: str = V1, **fields: Any) -> str:
    return json.dumps({"kind": "ExecCredential", "apiVersion": api_version, "status": fields})


def plugin(script: str, **fields: Any) -> Plugin:
    """A program of a few lines of Python."""
    return Plugin(sys.executable, fields.pop("api_version", V1), ("-c", script), where="config, context", **fields)


def counting(path: Path, expires: str = "") -> ExecCredentials:
    """Says how often it was run."""
    script = f"""
import json, pathlib
path = pathlib.Path({str(path)!r})
path.write_text(path.read_text() + "x" if path.exists() else "x")
status = {{"token": "token-" + str(len(path.read_text()))}}
if {expires!r}: status["expirationTimestamp"] = {expires!r}
print(json.dumps({{"kind": "ExecCredential", "apiVersion": {V1!r}, "status": status}}))
"""
    return ExecCredentials(plugin(script), client_context(b""), now=lambda: 1_800_000_000.0)


def test_a_program_is_run_once_however_many_ask(tmp_path: Path) -> None:
    async def work() -> None:
        shown = counting(tmp_path / "runs")
        assert set(await asyncio.gather(*(shown.header() for _ in range(20)))) == {"Bearer token-1"}
        assert await shown.header() == "Bearer token-1"

    run(work())


def test_a_program_is_run_again_when_its_credentials_are_refused_once_however_many_were(tmp_path: Path) -> None:
    async def work() -> None:
        shown = counting(tmp_path / "runs")
        await shown.header()
        seen = shown.version
        assert all(await asyncio.gather(*(shown.renew(seen) for _ in range(20))))
        assert await shown.header() == "Bearer token-2"
        assert shown.certificate == 0

    run(work())


@pytest.mark.parametrize(
    "expires, again", [("2020-01-01T00:00:00Z", True), ("2099-01-01T00:00:00+02:00", False)], ids=["past", "to come"]
)
def test_a_program_is_run_again_when_its_credentials_have_expired(tmp_path: Path, expires: str, again: bool) -> None:
    async def work() -> None:
        shown = counting(tmp_path / "runs", expires)
        await shown.header()
        assert await shown.header() == ("Bearer token-2" if again else "Bearer token-1")

    run(work())


def test_a_program_is_told_its_arguments_its_environment_and_the_cluster() -> None:
    script = (
        "import json, os; print(json.dumps({'kind': 'ExecCredential', 'apiVersion': os.environ['V'], 'status':"
        "{'token': os.environ['KUBERNETES_EXEC_INFO'].encode().hex() + '.' + os.environ.get('MINE', '')}}))"
    )
    v1beta1 = "client.authentication.k8s.io/v1beta1"
    cluster = {"server": "https://x", "config": {"a": 1}}

    async def work() -> None:
        one = plugin(script, api_version=v1beta1, env=(("V", v1beta1),), cluster=cluster, interactive="Never")
        shown = ExecCredentials(one, None, environ={"MINE": "yes", "PATH": os.environ["PATH"], "V": "overridden"})
        header = await shown.header()
        assert header is not None
        info, mine = header.removeprefix("Bearer ").split(".")
        assert mine == "yes"
        spec = {"interactive": False, "cluster": cluster}
        assert json.loads(bytes.fromhex(info)) == {"kind": "ExecCredential", "apiVersion": v1beta1, "spec": spec}

    run(work())


def test_a_client_certificate_from_a_program_is_shown_and_a_new_one_makes_new_connections(tmp_path: Path) -> None:
    path = tmp_path / "printed"
    tls = asking_for_certificates()

    async def work() -> None:
        pem = CLIENT.decode()
        path.write_text(credential(clientCertificateData=pem, clientKeyData=pem))
        context = client_context((DATA / "ca.pem").read_bytes())
        shown = ExecCredentials(plugin(f"print(open({str(path)!r}).read())"), context)
        async with FakeServer(tls) as server, Client(server.access(tls=context, credentials=shown)) as client:
            assert await client.request("GET", "/api/v1/pods")
        assert (shown.version, shown.certificate) == (1, 0)
        path.write_text(credential(clientCertificateData=OTHER.decode(), clientKeyData=OTHER.decode()))
        assert await shown.renew(1)
        assert (shown.version, shown.certificate) == (2, 1)

    run(work())


@pytest.mark.parametrize(
    "printed, words",
    [
        pytest.param("secret", "something that is not JSON", id="no JSON"),
        pytest.param("[]", "printed no ExecCredential", id="no object"),
        pytest.param(credential(token=5), "status.token: expected a string, got an integer", id="a wrong type"),
        pytest.param(credential(token="x", expirationTimestamp="soon"), "expirationTimestamp", id="no time"),
        pytest.param(
            credential("client.authentication.k8s.io/v1beta1", token="x"), f"wants ExecCredential of {V1}", id="v"
        ),
        pytest.param(credential(), "neither a token nor a client certificate", id="nothing"),
        pytest.param(credential(clientKeyData="x"), "only one of client certificate and key", id="a key alone"),
        pytest.param(
            credential(clientCertificateData="x", clientKeyData="x"), "certificate that cannot be used", id="pem"
        ),
        pytest.param(credential(token="two words"), "printed a token that is none", id="no token"),
        pytest.param("x" * (2 << 20), "printed more than 1048576 bytes", id="too much"),
    ],
)
def test_what_a_program_prints_instead_of_credentials_is_one_clear_line(
    tmp_path: Path, printed: str, words: str
) -> None:
    path = tmp_path / "printed"
    path.write_text(printed)

    async def work() -> None:
        shown = ExecCredentials(plugin(f"print(open({str(path)!r}).read())"), client_context(b""))
        said = await problem(shown.header())
        assert said.startswith(f"config, context: exec: credential plugin {sys.executable}: ")
        assert words in said
        assert "secret" not in said

    run(work())


def test_a_program_that_fails_is_quoted_in_one_line() -> None:
    async def work() -> None:
        script = "import sys; print('first', file=sys.stderr); sys.exit('please log in again')"
        said = await problem(ExecCredentials(plugin(script, interactive="Never"), None).header())
        assert said.endswith("failed with exit code 1: please log in again")

    run(work())


@pytest.mark.parametrize("hint, words", [("", "install it, or set its full path"), ("try brew", "try brew")])
def test_a_program_that_is_not_there_is_named_with_how_to_get_it(hint: str, words: str) -> None:
    async def work() -> None:
        missing = Plugin("no-such-program", V1, install_hint=hint, where="config")
        said = await problem(ExecCredentials(missing, None).header())
        assert said == f"config: exec: credential plugin no-such-program: executable not found: {words}"
        with tempfile.NamedTemporaryFile() as file:
            said = await problem(ExecCredentials(Plugin(file.name, V1), None).header())
            assert said.endswith("cannot be run: Permission denied")

    run(work())


@pytest.mark.parametrize("loops", [asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
@pytest.mark.parametrize("child", [False, True], ids=["itself", "with a child that holds its output open"])
def test_a_program_that_never_ends_is_ended(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, loops: Callable[[], asyncio.AbstractEventLoop], child: bool
) -> None:
    monkeypatch.setattr(exec_credentials, "RUN_S", 0.5)
    path = tmp_path / "pids"
    script = f"""
import os, subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]).pid if {child} else os.getpid()
open({str(path)!r}, "w").write(f"{{os.getpid()}} {{child}}")
time.sleep(60)
"""

    async def work() -> None:
        async with asyncio.timeout(10):
            said = await problem(ExecCredentials(plugin(script, interactive="Never"), None).header())
        assert said.endswith("did not end within 0.5 s")

    with asyncio.Runner(loop_factory=loops) as runner:
        runner.run(work())
    if path.exists():
        own, started = map(int, path.read_text().split())
        if child:
            os.kill(started, signal.SIGKILL)
        with pytest.raises(ProcessLookupError):
            os.kill(own, 0)


def test_a_program_whose_caller_is_cancelled_is_ended(tmp_path: Path) -> None:
    path = tmp_path / "pid"

    async def work() -> None:
        script = f"import os, time; open({str(path)!r}, 'w').write(str(os.getpid())); time.sleep(60)"
        task = asyncio.create_task(ExecCredentials(plugin(script, interactive="Never"), None).header())
        while not (path.exists() and path.read_text()):
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        with pytest.raises(ProcessLookupError):
            os.kill(int(path.read_text()), 0)

    run(work())


def test_a_program_that_must_ask_a_person_is_refused_where_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    with Path(os.devnull).open() as nobody:
        monkeypatch.setattr(sys, "stdin", nobody)

        async def work() -> None:
            said = await problem(ExecCredentials(plugin("", interactive="Always"), None).header())
            assert said.endswith("has interactiveMode Always, and standard input is not a terminal")

        run(work())
