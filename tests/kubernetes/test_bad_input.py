"""What is wrong from the start, or becomes wrong: the real program says so in one line, with what to do about it.

What can only be mended by somebody ends it, with exit code 2; what may mend itself is tried again. No traceback, ever.
"""

import base64
import json
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kubernetes.api import RefusedError
from kubernetes.certificates import make_certificates
from kubernetes.cluster import Cluster, Scheduler, answers
from kubernetes.drills import FAST, limit
from kubernetes.objects import Json, pod
from kubernetes.parts import wait_until
from kubernetes.proxy import FaultProxy, Faults

ENDS_WITHIN_S = 10.0
RBAC = "/apis/rbac.authorization.k8s.io/v1"
OUR_ROLE = "bad-input"
HEADER: Json = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}


def ends(*flags: str) -> str:
    """The one line that the program ends with, exit code 2; nothing but its greeting may come before."""
    command = [sys.executable, "-m", "situate", "scheduler", "--leader-elect=false", *flags]
    done = subprocess.run(command, capture_output=True, text=True, timeout=limit(ENDS_WITHIN_S), check=False)
    said = done.stdout + done.stderr
    assert "Traceback" not in said, said
    assert done.returncode == 2, said
    lines = [line for line in said.splitlines() if not line.startswith(("I", "W"))]
    assert len(lines) == 1, said
    assert lines[0].startswith("error: ")
    return lines[0].removeprefix("error: ")


# ── kubeconfigs ─────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def kubeconfig(cluster: Cluster, tmp_path: Path) -> Callable[..., str]:
    """A kubeconfig that is right but for what is given."""

    def write(*, endpoint: Json | None = None, user: Json | None = None, **fields: object) -> str:
        whole = json.loads(cluster.kubeconfig.read_text())
        whole["clusters"][0]["cluster"] |= endpoint or {}
        if user is not None:
            whole["users"][0]["user"] = user
        path = tmp_path / "config"
        path.write_text(json.dumps(whole | fields))
        return f"--kubeconfig={path}"

    return write


Write = Callable[..., str]


def test_a_kubeconfig_that_is_not_there(tmp_path: Path) -> None:
    path = tmp_path / "nowhere"
    assert ends(f"--kubeconfig={path}", "--secure-port=0") == (
        f"{path}: the kubeconfig cannot be read: No such file or directory"
    )


def test_a_kubeconfig_that_is_no_yaml(tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_text("clusters: [{\n")
    assert ends(f"--kubeconfig={path}", "--secure-port=0").startswith(f"{path}: line 2, column 1: not YAML: ")


def test_a_context_that_is_not_in_the_kubeconfig(kubeconfig: Write) -> None:
    said = ends(kubeconfig(), "--context=other", "--secure-port=0")
    assert said.endswith('context "other": there is no such context; there are: admin')


def test_an_authority_that_is_no_certificate(kubeconfig: Write, tmp_path: Path) -> None:
    (tmp_path / "ca.crt").write_text("nothing")
    said = ends(kubeconfig(endpoint={"certificate-authority": "ca.crt"}), "--secure-port=0")
    assert 'cluster "test".certificate-authority: ' in said
    assert said.endswith("ca.crt: no PEM certificates")


def test_a_client_certificate_of_an_authority_that_the_server_does_not_know(kubeconfig: Write, tmp_path: Path) -> None:
    make_certificates(tmp_path)
    said = ends(kubeconfig(user={"client-certificate": "admin.crt", "client-key": "admin.key"}), "--secure-port=0")
    assert "credentials" in said
    assert str(tmp_path / "config") in said


def test_a_client_certificate_without_its_key(kubeconfig: Write, tmp_path: Path) -> None:
    make_certificates(tmp_path)
    said = ends(kubeconfig(user={"client-certificate": "admin.crt", "client-key": "nowhere"}), "--secure-port=0")
    assert 'user "admin".client-key: ' in said
    assert said.endswith("nowhere: No such file or directory")


def test_a_token_that_the_server_does_not_know(kubeconfig: Write, tmp_path: Path) -> None:
    said = ends(kubeconfig(user={"token": "letmein"}), "--secure-port=0")
    assert "wrong or expired credentials? Get new ones, or name another --kubeconfig or --context" in said
    assert str(tmp_path / "config") in said
    assert "letmein" not in said


def test_a_token_that_has_expired(cluster: Cluster, kubeconfig: Write) -> None:
    cluster.token_for("scheduler")
    said = ends(kubeconfig(user={"token": expired_token(cluster, "scheduler")}), "--secure-port=0")
    assert "wrong or expired credentials? Get new ones" in said


def expired_token(cluster: Cluster, account: str) -> str:
    """A service account's token as the API server makes them, but over: it makes none for less than ten minutes."""
    name = f"/api/v1/namespaces/{cluster.namespace}/serviceaccounts/{account}"
    claims = {
        "iss": "https://kubernetes.default.svc",
        "aud": ["https://kubernetes.default.svc"],
        "sub": f"system:serviceaccount:{cluster.namespace}:{account}",
        "iat": int(time.time()) - 7200,
        "nbf": int(time.time()) - 7200,
        "exp": int(time.time()) - 3600,
        "kubernetes.io": {
            "namespace": cluster.namespace,
            "serviceaccount": {"name": account, "uid": cluster.api.get(name)["metadata"]["uid"]},
        },
    }
    signed = ".".join(encoded(json.dumps(one).encode()) for one in ({"alg": "ES256", "typ": "JWT"}, claims))
    key = cluster.home / "service-accounts.key"
    command = ["openssl", "dgst", "-sha256", "-sign", str(key)]
    signature = subprocess.run(command, input=signed.encode(), capture_output=True, check=True).stdout
    return f"{signed}.{encoded(raw_signature(signature))}"


def encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def raw_signature(der: bytes) -> bytes:
    """Two numbers of 32 bytes each: what OpenSSL wraps in ASN.1."""
    first = der[4 : 4 + der[3]]
    second = der[6 + der[3] :]
    return b"".join(one.lstrip(b"\0").rjust(32, b"\0") for one in (first, second))


def test_a_credential_plugin_that_is_not_installed(kubeconfig: Write) -> None:
    plugin = {"apiVersion": "client.authentication.k8s.io/v1", "command": "no-such-plugin", "interactiveMode": "Never"}
    said = ends(kubeconfig(user={"exec": plugin}), "--secure-port=0")
    assert "credential plugin no-such-plugin: executable not found: install it, or set its full path" in said


# ── configuration and port ──────────────────────────────────────────────────────────────────────────────────────────

WRONG = {
    "a value that is out of range": (
        {"percentageOfNodesToScore": 101},
        "percentageOfNodesToScore: Invalid value: 101: not in valid range [0-100]",
    ),
    "a field that does not exist": (
        {"percentageOfNodeToScore": 10},
        'strict decoding error: unknown field "percentageOfNodeToScore"',
    ),
    "a plugin that does not exist": (
        {"profiles": [{"plugins": {"filter": {"enabled": [{"name": "Nope"}]}}}]},
        'profiles[0].plugins.filter: FilterPlugin "Nope" does not exist',
    ),
    "a lease that is over before its leader gives up": (
        {"leaderElection": {"leaderElect": True, "leaseDuration": "5s", "renewDeadline": "10s"}},
        "must be greater than `RenewDeadline`",
    ),
    "another version": (
        {"apiVersion": "kubescheduler.config.k8s.io/v1beta3"},
        'only "KubeSchedulerConfiguration" of version "kubescheduler.config.k8s.io/v1" is read',
    ),
}


@pytest.mark.parametrize("config, problem", WRONG.values(), ids=WRONG.keys())
def test_an_invalid_configuration(kubeconfig: Write, tmp_path: Path, config: Json, problem: str) -> None:
    path = tmp_path / "scheduler.yaml"
    path.write_text(json.dumps(HEADER | config))
    said = ends(kubeconfig(), f"--config={path}", "--secure-port=0", "--leader-elect=true")
    assert said.startswith(f"{path}: ")
    assert problem in said


def test_a_port_that_is_taken(kubeconfig: Write) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert ends(kubeconfig(), "--bind-address=127.0.0.1", f"--secure-port={port}") == (
            f"127.0.0.1:{port} is already in use: stop that process, or choose another --secure-port (0: none)"
        )


# ── what may mend itself ────────────────────────────────────────────────────────────────────────────────────────────


def begin(cluster: Cluster, kubeconfig: Path, ready: str = "/livez", *flags: str) -> Scheduler:
    """A scheduler that need not get far."""
    command = [sys.executable, "-m", "situate", "scheduler"]
    return cluster.scheduler("situate", command, FAST, kubeconfig=kubeconfig, ready=ready, flags=flags)


def until_said(scheduler: Scheduler, text: str, within_s: float = 30.0) -> str:
    """The first line with this in it; quotes in it without their backslashes."""
    found: list[str] = []

    def said() -> bool:
        found[:] = [line for line in scheduler.said().replace('\\"', '"').splitlines() if text in line]
        return bool(found)

    try:
        wait_until(said, text, within_s)
    except TimeoutError:
        raise AssertionError(f"never said: {text}\n{scheduler.tail()}") from None
    return found[0]


def still_well(scheduler: Scheduler) -> None:
    assert scheduler.running
    assert "Traceback" not in scheduler.said(), scheduler.tail(60)


def test_a_server_that_cannot_be_reached_is_tried_again_until_it_can(cluster: Cluster) -> None:
    cluster.hollow_nodes(1)
    with FaultProxy(cluster) as proxy:
        proxy.set(Faults(refuse=True))
        access = cluster.kubeconfig_for(cluster.tokens["system:kube-scheduler"], server=proxy.url)
        scheduler = begin(cluster, access)
        line = until_said(scheduler, "it cannot be reached: Connection refused")
        assert f"check the address and the network of {access}" in line
        assert not answers(f"{scheduler.url}/readyz")
        wait_until(lambda: scheduler.said().count("trying again") >= 2, "a second try")
        proxy.set(Faults())
        cluster.create(pod("web"))
        cluster.wait_for_bound("web", within_s=60)
        still_well(scheduler)


def test_a_server_whose_certificate_is_not_trusted(cluster: Cluster, tmp_path: Path) -> None:
    whole = json.loads(cluster.kubeconfig.read_text())
    whole["clusters"][0]["cluster"]["certificate-authority"] = str(cluster.home / "client-ca.crt")
    path = tmp_path / "config"
    path.write_text(json.dumps(whole))
    scheduler = begin(cluster, path)
    line = until_said(scheduler, "its certificate is not trusted")
    assert f"check certificate-authority in {path}" in line
    assert scheduler.stop() == 0
    assert "Traceback" not in scheduler.said()


def scheduler_rules(cluster: Cluster) -> list[Json]:
    """What kube-scheduler may do, in all namespaces."""
    roles = ("clusterroles/system:kube-scheduler", "clusterroles/system:volume-scheduler")
    found = [rule for role in roles for rule in cluster.api.get(f"{RBAC}/{role}")["rules"]]
    # The rights of volume-scheduler are given with a role of its own in kube-scheduler's deployment.
    return [*found, {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list", "watch"]}]


def without(rules: list[Json], resource: str, verb: str) -> list[Json]:
    found = []
    for rule in rules:
        kept = [one for one in rule.get("resources", []) if one != resource]
        if kept != rule.get("resources", []):
            left = [one for one in rule["verbs"] if one not in (verb, "*")]
            found += [{**rule, "resources": [resource], "verbs": left}] if left else []
        if kept or not rule.get("resources"):
            found.append({**rule, "resources": kept} if kept else rule)
    return found


@pytest.fixture
def grant(cluster: Cluster) -> Iterator[Callable[[list[Json]], None]]:
    """Gives the service account `scheduler` these rights, and no others."""
    role = {"apiVersion": RBAC.removeprefix("/apis/"), "kind": "ClusterRole", "metadata": {"name": OUR_ROLE}}
    subject = {"kind": "ServiceAccount", "namespace": cluster.namespace, "name": "scheduler"}
    named = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": OUR_ROLE}
    cluster.api.post(f"{RBAC}/clusterroles", {**role, "rules": []})
    cluster.api.post(
        f"{RBAC}/clusterrolebindings",
        {**role, "kind": "ClusterRoleBinding", "subjects": [subject], "roleRef": named},
    )
    yield lambda rules: ignore(cluster.api.put(f"{RBAC}/clusterroles/{OUR_ROLE}", {**role, "rules": rules}))
    for kind in ("clusterroles", "clusterrolebindings"):
        cluster.api.delete(f"{RBAC}/{kind}/{OUR_ROLE}")


def ignore(_: object) -> None:
    pass


Grant = Callable[[list[Json]], None]


def test_without_any_rights_it_says_which_it_needs_and_begins_when_it_has_them(cluster: Cluster, grant: Grant) -> None:
    cluster.hollow_nodes(1)
    scheduler = begin(cluster, cluster.kubeconfig_for(cluster.token_for("scheduler")))
    line = until_said(scheduler, 'cannot list, watch resource "nodes"')
    assert 'add the rule {apiGroups: [""], resources: ["nodes"], verbs: ["list","watch"]} to a ClusterRole' in line
    assert not answers(f"{scheduler.url}/readyz")
    cluster.create(pod("web"))
    grant(scheduler_rules(cluster))
    cluster.wait_for_bound("web", within_s=90)
    still_well(scheduler)


@pytest.mark.parametrize(
    "resource, verb", [("pods/binding", "create"), ("nodes", "watch")], ids=["binding pods", "watching nodes"]
)
def test_one_right_is_missing_until_it_is_given(cluster: Cluster, grant: Grant, resource: str, verb: str) -> None:
    cluster.hollow_nodes(1)
    all_of_them = scheduler_rules(cluster)
    grant(without(all_of_them, resource, verb))
    token = cluster.token_for("scheduler")
    wait_until(lambda: may(cluster, token, "pods"), "the rights to hold")
    scheduler = begin(cluster, cluster.kubeconfig_for(token))
    cluster.create(pod("web"))
    until_said(scheduler, f'cannot {verb} resource "{resource}"')
    time.sleep(1)
    assert cluster.bound() == {}
    still_well(scheduler)
    grant(all_of_them)
    cluster.wait_for_bound("web", within_s=90)
    still_well(scheduler)


def may(cluster: Cluster, token: str, resource: str) -> bool:
    """Whether the API server has heard of the role: it learns of them by and by."""
    access = cluster.kubeconfig_for(token, name="asking")
    try:
        said = cluster.kubectl(f"--kubeconfig={access}", "auth", "can-i", "list", resource, "--all-namespaces")
    except subprocess.CalledProcessError:
        return False
    return said.strip() == "yes"


def test_credentials_that_end_while_it_runs_are_renewed_from_their_file(
    cluster: Cluster, grant: Grant, tmp_path: Path
) -> None:
    cluster.hollow_nodes(1)
    grant(scheduler_rules(cluster))
    token = tmp_path / "token"
    token.write_text(cluster.token_for("scheduler"))
    wait_until(lambda: may(cluster, token.read_text(), "pods"), "the rights to hold")
    access = cluster._write_kubeconfig("by-file", {"tokenFile": str(token)}, None)
    scheduler = begin(cluster, access, "/readyz", "-v=2")
    cluster.create(pod("before"))
    cluster.wait_for_bound("before")

    # A token is worth nothing once its account is gone, though the server may remember it for some seconds.
    path = f"/api/v1/namespaces/{cluster.namespace}/serviceaccounts/scheduler"
    cluster.api.delete(path)
    wait_until(lambda: refused(cluster, token.read_text()), "the token to be refused")
    cluster.create(pod("between"))
    until_said(scheduler, "does not accept our credentials")
    assert "between" not in cluster.bound()
    still_well(scheduler)

    token.write_text(cluster.token_for("scheduler"))
    cluster.wait_for_bound("between", within_s=90)
    still_well(scheduler)


def refused(cluster: Cluster, token: str) -> bool:
    try:
        with_token = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}}
        answer = cluster.api.post("/apis/authentication.k8s.io/v1/tokenreviews", with_token)
    except RefusedError:
        return False
    return not answer["status"].get("authenticated", False)


def test_a_configuration_that_becomes_invalid_is_not_taken(cluster: Cluster) -> None:
    cluster.hollow_nodes(1)
    scheduler = cluster.situate(FAST)
    good = scheduler.config.read_text()
    scheduler.config.write_text(json.dumps(json.loads(good) | {"parallelism": -1}))
    line = until_said(scheduler, "The new configuration cannot be used, the old one stays")
    assert "parallelism: Invalid value: -1" in line
    cluster.create(pod("web"))
    cluster.wait_for_bound("web")
    still_well(scheduler)
