"""Users, tokens and nodes of a cluster that is up, as its administrator types the commands."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml

from cli.commands.test_up import Desk
from situate.cli.cluster.node_identity import renew_when_due
from situate.kube.client import Client
from situate.kube.kubeconfig import find_access
from situate.server.identity.joining.bootstrap_tokens import new_token, token_secret
from store import etcd_server

WITHIN_S = 30.0


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    one = Desk(tmp_path_factory.mktemp("identities"))
    one.says("up", "--port", "0", "--nodes", "1")
    try:
        yield one
    finally:
        one.run("down", "--delete")


def until(good: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WITHIN_S
    while not good():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def role_for(desk: Desk, user: str) -> None:
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": f"view-{user}"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
        "subjects": [{"kind": "Group", "apiGroup": "rbac.authorization.k8s.io", "name": "viewers"}],
    }
    desk.says("apply", "-f", "-", stdin=json.dumps(binding))


def test_a_user_has_access_until_removed(desk: Desk) -> None:
    said = desk.says("user", "add", "jane", "--group", "viewers", "--days", "30")
    assert said == "jane.kubeconfig is the kubeconfig of jane, valid for 30 days.\n"
    assert (desk.folder / "jane.kubeconfig").stat().st_mode & 0o777 == 0o600
    role_for(desk, "jane")
    desk.says("get", "pods", "-A", "--kubeconfig", "jane.kubeconfig")
    assert 'User "jane" cannot list resource "secrets"' in desk.refuses(
        "get", "secrets", "-A", "--kubeconfig", "jane.kubeconfig"
    )
    (listed,) = [one for one in json.loads(desk.says("user", "list", "-o", "json")) if one["name"] == "jane"]
    assert (listed["groups"], listed["credential"], listed["state"]) == (["viewers"], "certificate", "valid")
    assert desk.says("user", "remove", "jane") == "jane no longer has access: 1 credential revoked.\n"
    assert "Unauthorized" in desk.refuses("get", "pods", "-A", "--kubeconfig", "jane.kubeconfig")
    assert "revoked" in desk.says("user", "list")


def test_a_watch_ends_when_its_user_is_removed(desk: Desk) -> None:
    desk.says("user", "add", "joan", "--group", "system:masters")
    words = [sys.executable, "-m", "situate", "get", "pods", "-A", "--watch", "--kubeconfig", "joan.kubeconfig"]
    with subprocess.Popen(words, cwd=desk.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as watch:
        try:
            assert watch.stdout is not None
            time.sleep(2.0)
            assert watch.poll() is None
            desk.says("user", "remove", "joan")
            until(lambda: watch.poll() is not None)
        finally:
            if watch.poll() is None:
                watch.kill()


def test_mistakes_are_one_line(desk: Desk, tmp_path: Path) -> None:
    assert desk.refuses("user", "remove", "nobody") == "error: there is no user nobody; `situate user list` shows all"
    assert "names that begin with system:" in desk.refuses("user", "add", "system:x", "--kubeconfig", "-")
    assert "is not an address" in desk.refuses("user", "add", "there", "--server", "there:1")
    desk.says("user", "add", "there", "--server", "https://there.example:7443/")
    assert "server: https://there.example:7443\n" in (desk.folder / "there.kubeconfig").read_text()
    desk.says("user", "add", "twice")
    assert "twice.kubeconfig exists" in desk.refuses("user", "add", "twice")
    assert "there is no cluster in" in desk.refuses("user", "list", "--dir", str(tmp_path / "none"))
    assert "no token zz" in desk.refuses("token", "revoke", "zz")
    assert "is not a duration" in desk.refuses("token", "create", "--user", "a", "--ttl", "soon")
    assert "at most one of" in desk.refuses("token", "create", "--user", "a", "--node")
    assert "--name is for kubelets" in desk.refuses("token", "create", "--user", "a", "--name", "n")


def test_a_token_of_a_user_is_good_until_revoked(desk: Desk) -> None:
    token = desk.says("token", "create", "--user", "tim", "--group", "system:masters", "--ttl", "1h").strip()
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {"name": "c", "cluster": {"server": _server(desk), "certificate-authority": ".situate/pki/ca.crt"}}
        ],
        "users": [{"name": "u", "user": {"token": token}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    (desk.folder / "tim.kubeconfig").write_text(json.dumps(config))
    desk.says("get", "secrets", "-A", "--kubeconfig", "tim.kubeconfig")
    (listed,) = json.loads(desk.says("token", "list", "-o", "json"))
    assert listed["for"] == "user tim"
    assert token not in (desk.folder / ".situate" / "tokens.json").read_text()
    desk.says("token", "revoke", listed["id"])
    assert "Unauthorized" in desk.refuses("get", "secrets", "-A", "--kubeconfig", "tim.kubeconfig")


def test_a_token_of_a_service_account(desk: Desk) -> None:
    token = desk.says("token", "create", "--service-account", "default/default").strip()
    assert token.count(".") == 2
    assert "not found" in desk.refuses("token", "create", "--service-account", "default/none")


def test_a_token_for_kubelets_is_a_kubeconfig(desk: Desk) -> None:
    made = yaml.safe_load(desk.says("token", "create", "--name", "n7"))
    assert made["clusters"][0]["cluster"]["server"] == _server(desk)
    token = made["users"][0]["user"]["token"]
    listed = [one for one in json.loads(desk.says("token", "list", "-o", "json")) if one["for"] == "node n7"]
    assert [one["id"] for one in listed] == [token.partition(".")[0]]
    desk.says("token", "revoke", listed[0]["id"])


def test_a_machine_joins_once_and_runs_with_its_own_rights(desk: Desk) -> None:
    words = shlex.split(desk.says("token", "create", "--node"))
    assert words[:3] == ["situate", "node", "join"]
    listed = [one for one in json.loads(desk.says("token", "list", "-o", "json")) if one["for"] == "node any"]
    assert len(listed) == 1
    wrong = [*words[1:-1], "sha256:" + "0" * 64]
    assert "does not match --ca-hash" in desk.refuses(*wrong, "--name", "own", "--dir", "own")
    said = desk.says(*words[1:], "--name", "own", "--dir", "own")
    assert said == "Node own has its certificate. `situate node --process --dir own` runs it.\n"
    assert "Unauthorized" in desk.refuses(*words[1:], "--name", "other", "--dir", "other")
    assert "belongs to node own already" in desk.refuses(*words[1:], "--dir", "own")
    assert "belongs to node own, not to other" in desk.refuses("node", "--process", "--name", "other", "--dir", "own")
    # Its rights are those of this one node.
    config = ("--kubeconfig", "own/kubeconfig")
    assert "cannot list resource" in desk.refuses("get", "secrets", "-A", *config)
    assert "only its own Node object" in desk.refuses("get", "nodes", "node-1", *config)
    with _agent(desk, "--dir", "own"):
        until(lambda: "Ready" in desk.run("get", "node", "own").stdout)
    # Until somebody takes them away.
    desk.says("node", "remove", "own")
    assert "Unauthorized" in desk.refuses("get", "node", "own", *config)


def test_a_token_for_one_node_lets_no_other_join(desk: Desk) -> None:
    words = shlex.split(desk.says("token", "create", "--node", "n7", "--ttl", "30m"))
    at = words.index("n7")
    assert words[at - 1] == "--name"
    assert 'the token is for node "n7"' in desk.refuses(*words[1:at], "n8", *words[at + 1 :], "--dir", "n8")
    desk.says(*words[1:], "--dir", "n7")


def test_a_revoked_token_lets_nobody_join(desk: Desk) -> None:
    words = shlex.split(desk.says("token", "create", "--node"))
    token = words[words.index("--token") + 1]
    desk.says("token", "revoke", token.partition(".")[0])
    assert "Unauthorized" in desk.refuses(*words[1:], "--name", "n9", "--dir", "n9")


def test_an_administrators_kubeconfig_gets_the_node_its_own_certificate(desk: Desk) -> None:
    with _agent(desk, "--name", "mine", "--dir", "mine"):
        until(lambda: "Ready" in desk.run("get", "node", "mine").stdout)
    assert "cannot list resource" in desk.refuses("get", "secrets", "-A", "--kubeconfig", "mine/kubeconfig")


def test_a_machine_that_has_not_joined_is_shown_the_command(desk: Desk, tmp_path: Path) -> None:
    other = Desk(tmp_path)
    env = {**os.environ, "HOME": str(tmp_path)}
    env.pop("KUBECONFIG", None)
    words = [sys.executable, "-m", "situate", "node", "--process"]
    done = subprocess.run(words, cwd=other.folder, env=env, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("error: this machine has not joined a cluster: ")
    desk.says("user", "add", "plain")
    refused = desk.refuses("node", "--process", "--kubeconfig", "plain.kubeconfig", "--dir", "plain")
    assert refused.startswith("error: user plain may not add nodes; this machine has not joined a cluster")


def test_keys_are_replaced_while_the_server_runs(desk: Desk) -> None:
    def listed() -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for one in json.loads(desk.says("certificates", "list", "-o", "json")):
            found.setdefault(one["name"], []).append(one["id"])
        return found

    def works(name: str) -> bool:
        return desk.run("get", "nodes", "--kubeconfig", f"{name}.kubeconfig").exit_code == 0

    desk.says("user", "add", "before", "--group", "system:masters")
    first = listed()
    assert "--finish needs ca" in desk.refuses("certificates", "rotate", "server", "--finish")
    desk.says("certificates", "rotate", "server")
    desk.says("certificates", "rotate", "service-accounts", "--overlap", "1h")
    desk.says("certificates", "rotate", "ca")
    second = listed()
    assert second["server"] != first["server"]
    assert (len(second["service-accounts"]), len(second["authority"])) == (2, 2)
    desk.says("token", "create", "--service-account", "default/default")
    desk.says("user", "add", "during", "--group", "system:masters")
    until(lambda: works("during"))
    assert works("before")
    desk.says("get", "nodes")
    words = shlex.split(desk.says("token", "create", "--node"))
    assert words.count("--ca-hash") == 2
    desk.says(*words[1:], "--name", "rotated", "--dir", "rotated")
    before = (desk.folder / "rotated" / "client.pem").read_bytes()
    assert _renewing(desk, "rotated") == before, "nothing is due, and nothing has changed"
    desk.says("certificates", "rotate", "ca", "--finish")
    until(lambda: not works("before"))
    until(lambda: desk.run("get", "nodes").exit_code == 0)
    assert works("during")
    # A node learns of it by itself, and has a certificate of the authority that is left.
    until(lambda: _renewing(desk, "rotated") != before)
    assert (desk.folder / "rotated" / "ca.crt").read_text().count("BEGIN CERTIFICATE") == 1
    assert "not found" in desk.refuses("get", "node", "rotated", "--kubeconfig", "rotated/kubeconfig")


def test_a_node_renews_a_certificate_that_is_due(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    desk.says(*shlex.split(desk.says("token", "create", "--node", "due"))[1:], "--dir", "due")
    before = (desk.folder / "due" / "client.pem").read_bytes()
    monkeypatch.setattr("situate.server.identity.pki.certificates.due", lambda *_: True)
    assert _renewing(desk, "due") != before
    assert "not found" in desk.refuses("get", "node", "due", "--kubeconfig", "due/kubeconfig")


def _renewing(desk: Desk, name: str) -> bytes:
    """Look once whether the node's certificate is due, as its agent does. The certificate afterwards."""

    async def look() -> None:
        access = find_access(str(desk.folder / name / "kubeconfig"), None, None)
        async with Client(access, qps=-1) as client:
            renewing = asyncio.create_task(renew_when_due(client, desk.folder / name))
            await asyncio.sleep(0.5)
            renewing.cancel()

    asyncio.run(look())
    return (desk.folder / name / "client.pem").read_bytes()


def test_expired_tokens_of_nodes_are_removed_by_the_next(desk: Desk) -> None:
    old = token_secret(new_token(), datetime.now(UTC))
    desk.says("apply", "-f", "-", stdin=json.dumps(old))
    assert old["metadata"]["name"] in desk.says("get", "secrets", "-n", "kube-system")
    assert "expired" in desk.says("token", "list")
    desk.says("token", "create", "--node")
    assert old["metadata"]["name"] not in desk.says("get", "secrets", "-n", "kube-system")


@pytest.mark.skipif(etcd_server.missing() is not None, reason=str(etcd_server.missing()))
def test_another_server_of_the_same_etcd_refuses_them_too(tmp_path: Path) -> None:
    one, two = Desk(tmp_path / "one"), Desk(tmp_path / "two")
    with etcd_server.Etcd(tmp_path) as etcd:
        up = ("up", "--port", "0", "--nodes", "0", "--no-scheduler", "--store", f"etcd://{etcd.endpoints[0]}")
        try:
            for desk in (one, two):
                desk.folder.mkdir()
                if desk is two:
                    shutil.copytree(one.folder / ".situate" / "pki", two.folder / ".situate" / "pki")
                desk.says(*up)
            one.says("user", "add", "jane", "--group", "system:masters")
            there = (one.folder / "jane.kubeconfig").read_text().replace(_server(one), _server(two))
            (two.folder / "jane.kubeconfig").write_text(there)
            two.says("get", "nodes", "--kubeconfig", "jane.kubeconfig")
            one.says("user", "remove", "jane")
            until(lambda: "Unauthorized" in two.run("get", "nodes", "--kubeconfig", "jane.kubeconfig").stderr)
            # A node's token counts on both, and once.
            words = shlex.split(one.says("token", "create", "--node"))
            words[3] = _server(two)
            two.says(*words[1:], "--name", "n1", "--dir", "n1")
            words[3] = _server(one)
            assert "Unauthorized" in one.refuses(*words[1:], "--name", "n2", "--dir", "n2")
        finally:
            for desk in (one, two):
                desk.run("down", "--delete")


@contextlib.contextmanager
def _agent(desk: Desk, *words: str) -> Iterator[None]:
    argv = [sys.executable, "-m", "situate", "node", "--process", *words]
    env = {name: value for name, value in os.environ.items() if name != "KUBECONFIG"}
    with subprocess.Popen(argv, cwd=desk.folder, env=env) as process:
        try:
            yield
        finally:
            process.send_signal(signal.SIGTERM)


def _server(desk: Desk) -> str:
    return str(json.loads((desk.folder / ".situate" / "server.json").read_text())["url"])
