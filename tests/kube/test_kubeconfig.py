"""Kubeconfigs, good and bad, and the pod we run in: what they come down to, or the one line that says what is wrong."""

import asyncio
import base64
import ssl
import sys
from collections.abc import Coroutine, Mapping
from pathlib import Path
from typing import Any, TypeVar

import pytest
import yaml

from kube.fake_server import FakeServer
from situate.kube.access import Access
from situate.kube.client import Client
from situate.kube.credentials import TokenFile, WithFiles
from situate.kube.exec_credentials import ExecCredentials
from situate.kube.kubeconfig import find_access
from situate.kube.proxy import from_environment
from situate.wire.errors import InputError

DATA = Path(__file__).parents[1] / "loop" / "data"
CA = DATA / "ca.pem"
CLIENT = DATA / "client.pem"
SERVER = "https://127.0.0.1:6443"
V1 = "client.authentication.k8s.io/v1"

Result = TypeVar("Result")


def run(work: Coroutine[Any, Any, Result]) -> Result:
    return asyncio.run(work)


def b64(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()


def config(cluster: Any = None, user: Any = None, context: Any = None, **fields: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "dev",
        "preferences": {},
        "clusters": [{"name": "here", "cluster": {"server": SERVER, **(cluster or {})}}],
        "users": [{"name": "bob", "user": user or {}}],
        "contexts": [{"name": "dev", "context": {"cluster": "here", "user": "bob", **(context or {})}}],
        **fields,
    }


def written(path: Path, content: Any) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else yaml.safe_dump(content))
    return str(path)


def access(tmp_path: Path, content: Any, environ: Mapping[str, str] | None = None, **fields: Any) -> Access:
    return find_access(written(tmp_path / "config", content), environ=environ or {}, **fields)


def refusal(tmp_path: Path, content: Any, environ: Mapping[str, str] | None = None, **fields: Any) -> str:
    with pytest.raises(InputError) as caught:
        access(tmp_path, content, environ, **fields)
    line = str(caught.value)
    assert "\n" not in line
    assert line.startswith(f"{tmp_path / 'config'}: ")
    return line.removeprefix(f"{tmp_path / 'config'}: ")


def header(found: Access) -> str | None:
    return run(found.credentials.header())


# -- which one ---------------------------------------------------------------------------------------------------------


def test_what_is_named_wins_over_the_environment_and_that_over_the_home_and_that_over_the_pod(tmp_path: Path) -> None:
    def made(name: str) -> str:
        return written(tmp_path / name, config({"server": f"https://{Path(name).parts[0]}:1"}))

    account = tmp_path / "account"
    written(account / "token", "abc")
    written(account / "ca.crt", CA.read_text())
    named, listed, _ = made("named/config"), made("listed/config"), made("home/.kube/config")
    pod = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}
    env = {"HOME": str(tmp_path / "home"), "KUBECONFIG": listed, **pod}

    def server(*args: str | None, **environ: str) -> str:
        return find_access(*args, environ=environ, service_account=account).server

    assert server(named, **env) == "https://named:1"
    assert server(**env) == "https://listed:1"
    del env["KUBECONFIG"]
    assert server(**env) == "https://home:1"
    assert server(None, "dev", **env) == "https://home:1"
    assert server(HOME=str(tmp_path / "elsewhere"), **pod) == "https://10.0.0.1:443"
    written(tmp_path / "emptied" / ".kube" / "config", {"kind": "Config", "current-context": "", "contexts": None})
    assert server(HOME=str(tmp_path / "emptied"), **pod) == "https://10.0.0.1:443"
    assert server(None, None, "https://master:2/", **env) == "https://master:2"
    assert server(named, None, "https://master:2", **env) == "https://master:2"


def test_a_server_named_alone_is_shown_nothing_of_any_kubeconfig(tmp_path: Path) -> None:
    listed = written(tmp_path / "config", config(user={"token": "secret"}))
    found = find_access(master="https://other:6443", environ={"KUBECONFIG": listed})
    assert header(found) is None
    assert find_access(master="http://127.0.0.1:8080", environ={}).tls is None


def test_nothing_anywhere_is_one_line_that_says_where_was_looked(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"there is no .*/.kube/config and KUBECONFIG is not set.*--kubeconfig"):
        find_access(environ={"HOME": str(tmp_path)})
    with pytest.raises(InputError, match=r"KUBECONFIG names /no/such, /nor/this"):
        find_access(environ={"HOME": str(tmp_path), "KUBECONFIG": "/no/such:/nor/this"})


def test_a_file_that_is_named_and_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="/no/such: the kubeconfig cannot be read: No such file or directory"):
        find_access("/no/such", environ={})
    with pytest.raises(InputError, match="the kubeconfig cannot be read: Is a directory"):
        find_access(str(tmp_path), environ={})


# -- several files -----------------------------------------------------------------------------------------------------


def test_of_several_files_the_first_that_has_a_name_counts_and_missing_ones_do_not(tmp_path: Path) -> None:
    first = config({"server": "https://first:1"}, users=[], contexts=[])
    del first["current-context"]
    second = config({"server": "https://second:1"}, {"token": "second"})
    third = config({"server": "https://third:1"}, {"token": "third"}, **{"current-context": "other"})
    paths = [written(tmp_path / name, one) for name, one in (("1", first), ("2", second), ("3", third))]
    found = find_access(environ={"KUBECONFIG": ":".join(["", "/missing", *paths])})
    assert found.server == "https://first:1"
    assert header(found) == "Bearer second"
    assert found.where == f'{paths[1]}, context "dev"'


def test_an_empty_file_among_several_is_as_if_it_were_not_there(tmp_path: Path) -> None:
    empty, full = written(tmp_path / "1", ""), written(tmp_path / "2", config())
    assert find_access(environ={"KUBECONFIG": f"{empty}:{full}"}).server == SERVER


def test_paths_are_relative_to_the_file_they_stand_in(tmp_path: Path) -> None:
    clusters = config({"certificate-authority": "pki/ca.crt"}, users=[])
    users = config(user={"tokenFile": "token"}, clusters=[], contexts=[])
    written(tmp_path / "a" / "pki" / "ca.crt", CA.read_text())
    written(tmp_path / "b" / "token", "abc\n")
    one, two = written(tmp_path / "a" / "config", clusters), written(tmp_path / "b" / "config", users)
    found = find_access(environ={"KUBECONFIG": f"{one}:{two}"})
    assert header(found) == "Bearer abc"
    assert isinstance(found.credentials, WithFiles)


# -- what it comes down to ---------------------------------------------------------------------------------------------


def test_a_context_can_be_chosen_by_name(tmp_path: Path) -> None:
    content = config()
    content["clusters"].append({"name": "there", "cluster": {"server": "https://there:1/prefix/"}})
    content["contexts"].append({"name": "prod", "context": {"cluster": "there", "user": "bob", "namespace": "kube"}})
    found = access(tmp_path, content, context="prod")
    assert (found.server, found.namespace) == ("https://there:1/prefix", "kube")
    assert access(tmp_path, content).namespace == "default"


@pytest.mark.parametrize(
    "user, expected",
    [
        ({"token": "abc"}, "Bearer abc"),
        ({"username": "bob", "password": "secret"}, "Basic Ym9iOnNlY3JldA=="),
        ({"token": "abc", "tokenFile": "/no/such"}, "Bearer abc"),
        ({}, None),
    ],
    ids=["a token", "a password", "a token for when its file is not there", "nothing"],
)
def test_what_is_shown(tmp_path: Path, user: dict[str, str], expected: str | None) -> None:
    assert header(access(tmp_path, config(user=user))) == expected


def test_nothing_is_shown_in_the_open(tmp_path: Path) -> None:
    found = access(tmp_path, config({"server": "http://127.0.0.1:8080"}, {"token": "abc"}))
    assert (found.tls, header(found)) == (None, None)


def test_a_null_is_as_good_as_nothing(tmp_path: Path) -> None:
    exec_ = {"command": "x", "args": None, "env": None, "apiVersion": f"{V1}beta1"}
    found = access(tmp_path, config({"proxy-url": None}, {"token": None, "exec": exec_, "as": None}, extensions=None))
    assert isinstance(found.credentials, ExecCredentials)


def test_who_we_come_as_is_sent_in_headers(tmp_path: Path) -> None:
    extra = {"Acme.com/Project": ["a", "b"], "reason%": ["x"]}
    user = {"as": "bob", "as-uid": "7", "as-groups": ["dev", "ops"], "as-user-extra": extra}
    assert access(tmp_path, config(user=user)).headers == (
        ("Impersonate-User", "bob"), ("Impersonate-Uid", "7"),
        ("Impersonate-Group", "dev"), ("Impersonate-Group", "ops"),
        ("Impersonate-Extra-acme.com%2Fproject", "a"), ("Impersonate-Extra-acme.com%2Fproject", "b"),
        ("Impersonate-Extra-reason%25", "x"),
    )  # fmt: skip


@pytest.mark.parametrize("as_data", [True, False], ids=["as data", "as files"])
@pytest.mark.parametrize("name", ["localhost", "elsewhere"])
def test_the_certificates_of_a_kubeconfig_do_over_tls(tmp_path: Path, as_data: bool, name: str) -> None:
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(DATA / f"{name}.pem")
    tls.load_verify_locations(CA)
    tls.verify_mode = ssl.CERT_REQUIRED
    if as_data:
        cluster = {"certificate-authority-data": b64(CA)}
        user = {"client-certificate-data": b64(CLIENT), "client-key-data": b64(CLIENT)}
    else:
        cluster = {"certificate-authority": str(CA)}
        user = {"client-certificate": str(CLIENT), "client-key": str(CLIENT)}
    if name == "elsewhere":
        cluster["tls-server-name"] = "elsewhere.test"

    async def work() -> None:
        async with FakeServer(tls) as server:
            found = access(tmp_path, config({"server": server.url, **cluster}, user))
            async with Client(found) as client:
                assert await client.request("GET", "/api/v1/pods")

    run(work())


def test_a_server_whose_certificate_is_not_to_be_checked_is_not_checked(tmp_path: Path) -> None:
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(DATA / "elsewhere.pem")

    async def work() -> None:
        async with FakeServer(tls) as server:
            async with Client(access(tmp_path, config({"server": server.url}))) as client:
                with pytest.raises(Exception, match="not trusted"):
                    await client.request("GET", "/api/v1/pods")
            found = access(tmp_path, config({"server": server.url, "insecure-skip-tls-verify": True}))
            async with Client(found) as client:
                assert await client.request("GET", "/api/v1/pods")

    run(work())


def test_a_plugin_beside_the_kubeconfig_is_run_with_what_it_is_to_know(tmp_path: Path) -> None:
    program = tmp_path / "bin" / "plugin"
    written(
        program,
        f"#!{sys.executable}\nimport json, os, sys\n"
        "info = json.loads(os.environ['KUBERNETES_EXEC_INFO'])\n"
        "c = info['spec']['cluster']\n"
        "ok = c == {'server': %r, 'certificate-authority-data': %r, 'config': {'audience': 'x'}}\n"
        "token = f\"{sys.argv[1]}-{os.environ['COLOUR']}-{ok}\"\n"
        "print(json.dumps({'kind': 'ExecCredential', 'apiVersion': info['apiVersion'], 'status': {'token': token}}))"
        % (SERVER, b64(CA)),
    )
    program.chmod(0o755)
    exec_ = {
        "command": "./bin/plugin", "args": ["one"], "env": [{"name": "COLOUR", "value": "red"}], "apiVersion": V1,
        "interactiveMode": "Never", "provideClusterInfo": True,
    }  # fmt: skip
    extensions = [{"name": "client.authentication.k8s.io/exec", "extension": {"audience": "x"}}]
    cluster = {"certificate-authority": str(CA), "extensions": extensions}
    assert header(access(tmp_path, config(cluster, {"exec": exec_}))) == "Bearer one-red-True"


def test_a_plugin_is_not_run_where_there_is_a_token_or_a_certificate(tmp_path: Path) -> None:
    exec_ = {"command": "no-such-program", "apiVersion": V1, "interactiveMode": "Never"}
    assert header(access(tmp_path, config(user={"exec": exec_, "token": "abc"}))) == "Bearer abc"
    certified = {"client-certificate": str(CLIENT), "client-key": str(CLIENT)}
    assert header(access(tmp_path, config(user={"exec": exec_, **certified}))) is None


# -- what is wrong with it ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "content, line",
    [
        ("a: [", "line 2, column 1: not YAML: "),
        ("[]", "not a kubeconfig: expected an object, got a list"),
        ("---\na: 1\n---\nb: 1", "not a kubeconfig: holds several YAML documents"),
        ("kind: Pod\napiVersion: v1", 'not a kubeconfig: it is a "Pod" of "v1"'),
        ("", "no current-context: choose one (kubectl config use-context NAME); there are: none"),
        (
            config(**{"current-context": ""}),
            "no current-context: choose one (kubectl config use-context NAME); there are: dev",
        ),
        (config(**{"current-context": "prod"}), 'context "prod": there is no such context; there are: dev'),
        (config(clusters=[]), 'context "dev": cluster: there is no cluster "here"'),
        (config(users=[]), 'context "dev": user: there is no user "bob"'),
        (config(context={"user": ""}), 'context "dev": user: is not set'),
        (
            config(users=[{"name": "bob", "user": {"token": 5}}]),
            "users[0].user.token: not a kubeconfig: expected a string",
        ),
        (config(users={"bob": {}}), "users: not a kubeconfig: expected a list, got an object"),
        (config(users=[{"user": {}}]), "users[0]: not a kubeconfig: Object missing required field `name`"),
    ],
    ids=range(13),
)
def test_a_bad_kubeconfig_is_one_clear_line(tmp_path: Path, content: Any, line: str) -> None:
    assert refusal(tmp_path, content).startswith(line)


@pytest.mark.parametrize(
    "cluster, line",
    [
        ({"server": ""}, "server: is not set"),
        ({"server": "127.0.0.1:6443"}, 'server: "127.0.0.1:6443" is not an address: it must be like https://host:6443'),
        ({"server": "https://[::1"}, 'server: "https://[::1" is not an address'),
        ({"server": "https://host:99999"}, 'server: "https://host:99999" is not an address'),
        ({"server": "https://bob:secret@host"}, "server: must hold only scheme, host, port and path"),
        ({"certificate-authority": "gone.crt"}, "certificate-authority: {tmp}/gone.crt: No such file or directory"),
        ({"certificate-authority": "config"}, "certificate-authority: {tmp}/config: no PEM certificates"),
        ({"certificate-authority-data": "%%%"}, "certificate-authority-data: is not base64"),
        ({"certificate-authority-data": "aGVsbG8="}, "certificate-authority-data: no PEM certificates"),
        (
            {"certificate-authority": str(CA), "certificate-authority-data": "x"},
            "certificate-authority: and certificate-authority-data are both set: remove one",
        ),
        (
            {"certificate-authority": str(CA), "insecure-skip-tls-verify": True},
            "insecure-skip-tls-verify: is set, and so is a certificate authority: remove one",
        ),
        ({"proxy-url": "socks5://x:1"}, "proxy-url: socks5 proxies are not supported: use an http:// one"),
        ({"proxy-url": "nonsense"}, "proxy-url: is not an address"),
    ],
    ids=range(13),
)
def test_a_bad_cluster_is_one_clear_line(tmp_path: Path, cluster: Any, line: str) -> None:
    place, _, field = line.partition(": ")
    wanted = f'context "dev": cluster "here".{place}: {field}'.replace("{tmp}", str(tmp_path))
    assert refusal(tmp_path, config(cluster)) == wanted


EXEC = {"command": "x", "apiVersion": V1, "interactiveMode": "Never"}


@pytest.mark.parametrize(
    "user, line",
    [
        ({"token": "two words"}, "token: is not a token"),
        ({"tokenFile": "gone"}, "tokenFile: {tmp}/gone: No such file or directory"),
        ({"token": "a", "username": "b"}, "token: and username or password are both set: remove one"),
        (
            {"auth-provider": {"name": "gcp"}},
            'auth-provider: "gcp" is not supported: use a credential plugin (exec); for oidc, kubelogin',
        ),
        (
            {"client-certificate": str(CLIENT)},
            "client-key: or client-key-data must be set, for there is a client certificate",
        ),
        (
            {"client-certificate": "gone", "client-key": str(CLIENT)},
            "client-certificate: {tmp}/gone: No such file or directory",
        ),
        ({"client-certificate-data": "!", "client-key-data": "!"}, "client-certificate-data: is not base64"),
        (
            {"client-certificate": str(CLIENT), "client-key": str(DATA / "localhost.pem")},
            "client-certificate: the key does not belong to the certificate",
        ),
        (
            {"client-certificate": "x", "client-certificate-data": "eA==", "client-key": "x"},
            "client-certificate: and client-certificate-data are both set: remove one",
        ),
        ({"as-groups": ["x"]}, "as: is not set, although as-uid, as-groups or as-user-extra is"),
        ({"as": "a\nb"}, "as: Impersonate-User cannot be sent: only printable ASCII can"),
        ({"exec": {**EXEC, "command": ""}}, "exec.command: is not set"),
        ({"exec": {**EXEC, "apiVersion": ""}}, f"exec.apiVersion: is not set: set it to {V1}"),
        (
            {"exec": {**EXEC, "apiVersion": f"{V1}alpha1"}},
            f'exec.apiVersion: "{V1}alpha1" is not supported: update the plugin and its entry, to {V1}',
        ),
        ({"exec": {**EXEC, "interactiveMode": ""}}, "exec.interactiveMode: must be one of Never, IfAvailable, Always"),
        ({"exec": {**EXEC, "env": [{"value": "x"}]}}, "exec.env: has a variable without a name"),
    ],
    ids=range(16),
)
def test_a_bad_user_is_one_clear_line(tmp_path: Path, user: Any, line: str) -> None:
    place, _, field = line.partition(": ")
    wanted = f'context "dev": user "bob".{place}: {field}'.replace("{tmp}", str(tmp_path))
    assert refusal(tmp_path, config(user=user)) == wanted


def test_what_is_secret_is_in_no_message(tmp_path: Path) -> None:
    for user in ({"token": "sec ret"}, {"token": "sec ret", "username": "x"}, {"client-certificate-data": "sec ret"}):
        assert "sec ret" not in refusal(tmp_path, config(user=user))


# -- the pod we run in -------------------------------------------------------------------------------------------------


def in_pod(account: Path, **environ: str) -> Access:
    env = {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": "6443", **environ}
    return find_access(environ=env, service_account=account)


def test_a_pod_comes_as_its_service_account_and_follows_its_token(tmp_path: Path) -> None:
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(DATA / "localhost.pem")
    written(tmp_path / "ca.crt", CA.read_text())
    written(tmp_path / "token", "first")
    written(tmp_path / "namespace", "kube-system")

    async def work() -> None:
        async with FakeServer(tls) as server:
            port = server.url.rpartition(":")[2]
            found = in_pod(tmp_path, KUBERNETES_SERVICE_PORT=port)
            assert (found.namespace, found.where) == ("kube-system", "the pod's service account")
            async with Client(found) as client:
                await client.request("GET", "/api/v1/pods")
                written(tmp_path / "token", "second")
                server.fault("GET", "/pods", status=401)
                await client.request("GET", "/api/v1/pods")
            shown = [one.headers["Authorization"] for one in server.requests]
            assert shown == ["Bearer first", "Bearer first", "Bearer second"]

    run(work())


def test_a_pod_on_ipv6_has_its_address_in_brackets(tmp_path: Path) -> None:
    written(tmp_path / "ca.crt", CA.read_text())
    written(tmp_path / "token", "x")
    assert in_pod(tmp_path, KUBERNETES_SERVICE_HOST="fd00::1").server == "https://[fd00::1]:6443"


def test_a_pod_without_a_token_or_an_authority_is_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"token: the pod's service account: not there: mount it \(automount"):
        in_pod(tmp_path)
    written(tmp_path / "token", "x")
    with pytest.raises(InputError, match=r"the pod's service account: .*ca.crt: No such file"):
        in_pod(tmp_path)
    with pytest.raises(InputError, match="must both be set"):
        in_pod(tmp_path, KUBERNETES_SERVICE_PORT="")


def test_a_token_file_is_what_a_pod_shows(tmp_path: Path) -> None:
    written(tmp_path / "ca.crt", CA.read_text())
    written(tmp_path / "token", "x")
    found = in_pod(tmp_path)
    assert isinstance(found.credentials, WithFiles)
    assert isinstance(found.credentials._others, TokenFile)


# -- proxies -----------------------------------------------------------------------------------------------------------


def test_the_proxy_of_the_kubeconfig_wins_over_that_of_the_environment(tmp_path: Path) -> None:
    env = {"HTTPS_PROXY": "proxy:3128"}
    there = {"server": "https://there:6443"}
    assert access(tmp_path, config(there), env).proxy == "http://proxy:3128"
    assert access(tmp_path, config({**there, "proxy-url": "http://other:1"}), env).proxy == "http://other:1"
    assert access(tmp_path, config(), env).proxy is None  # loopback
    with pytest.raises(InputError, match="environment variable HTTPS_PROXY: socks5 proxies are not supported"):
        access(tmp_path, config(there), {"HTTPS_PROXY": "socks5://x:1"})


@pytest.mark.parametrize(
    "server, no_proxy, proxied",
    [
        ("https://host.example.com:6443", "", True),
        ("https://host.example.com:6443", "*", False),
        ("https://host.example.com:6443", "example.com", False),
        ("https://host.example.com:6443", ".example.com", False),
        ("https://example.com", ".example.com", True),
        ("https://example.com", "example.com", False),
        ("https://badexample.com", "example.com", True),
        ("https://host.example.com:6443", "other, HOST.example.com:6443", False),
        ("https://host.example.com:6443", "host.example.com:443", True),
        ("https://10.1.2.3:6443", "10.0.0.0/8", False),
        ("https://11.1.2.3:6443", "10.0.0.0/8", True),
        ("https://10.1.2.3:6443", "10.1.2.3", False),
        ("https://10.1.2.3:6443", "10.1.2.3:6443", False),
        ("https://10.1.2.3:6443", "10.1.2.3:443", True),
        ("https://[fd00::1]:6443", "fd00::/8", False),
        ("https://[fd00::1]:6443", "fd00::1", False),
        ("https://localhost:6443", "", False),
        ("https://127.0.0.2:6443", "", False),
        ("https://[::1]:6443", "", False),
        ("http://host", "", False),
    ],
)
def test_the_environment_names_a_proxy_as_for_go_programs(server: str, no_proxy: str, proxied: bool) -> None:
    env = {"https_proxy": "http://p:1", "no_proxy": no_proxy}
    assert from_environment(server, env) == ("http://p:1" if proxied else None)
