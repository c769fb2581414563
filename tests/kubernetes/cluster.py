"""A real control plane on loopback: etcd and kube-apiserver, with kwok's kubelets and kube-scheduler on demand.

TLS and RBAC are on, ports are random, identities are bearer tokens. There is no kube-controller-manager, so the
admission plugins whose other half it is are off (see WITHOUT_CONTROLLERS), and namespaces are emptied here.
Works with no test framework: `with Cluster(folder) as cluster: ...`.
"""

import base64
import http.client
import json
import os
import secrets
import ssl
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from kubernetes import objects, parts
from kubernetes.api import Api, Json, RefusedError
from kubernetes.certificates import make_certificates
from kubernetes.parts import Part, PartFailedError, folder, free_ports, wait_until

PORT_TRIES = 5
KUBECTL_S = 60.0
IN_USE = "address already in use"

# Each counts on kube-controller-manager: without it a pod waits for its ServiceAccount to be made, a new node keeps its
# not-ready taint, claims, volumes and pod groups keep their finalizers.
WITHOUT_CONTROLLERS = ("ServiceAccount", "TaintNodesByCondition", "StorageObjectInUseProtection", "PodGroupProtection")

# Gangs (spec.schedulingGroup, PodGroup) are alpha in this release.
FEATURE_GATES = {"GenericWorkload": True} | ({"GangScheduling": True} if parts.minor() < 37 else {})
RUNTIME_CONFIG = {objects.GROUPS_API: True}

# The users of the token file: name → groups. RBAC's own bootstrap policy says what system:kube-scheduler may do.
USERS = {"admin": "system:masters", "system:kube-scheduler": "", "system:kube-proxy": ""}

# What a test may leave behind, in the order in which it is removed.
EVERYWHERE = (
    "/api/v1/pods",
    "/api/v1/persistentvolumeclaims",
    "/apis/policy/v1/poddisruptionbudgets",
    f"/apis/{objects.GROUPS_API}/podgroups",
    f"/apis/{objects.GROUPS_API}/workloads",
    "/apis/resource.k8s.io/v1/resourceclaims",
    "/apis/apps/v1/deployments",
    "/apis/apps/v1/replicasets",
    "/apis/apps/v1/statefulsets",
    "/apis/batch/v1/jobs",
    "/apis/coordination.k8s.io/v1/leases",
    "/apis/events.k8s.io/v1/events",
    "/apis/storage.k8s.io/v1/csistoragecapacities",
)
CLUSTER_WIDE = (
    "/api/v1/nodes",
    "/api/v1/persistentvolumes",
    "/apis/storage.k8s.io/v1/storageclasses",
    "/apis/storage.k8s.io/v1/csinodes",
    "/apis/storage.k8s.io/v1/csidrivers",
    "/apis/storage.k8s.io/v1/volumeattachments",
    "/apis/scheduling.k8s.io/v1/priorityclasses",
    "/apis/resource.k8s.io/v1/deviceclasses",
    "/apis/resource.k8s.io/v1/resourceslices",
)
KEPT_NAMESPACES = frozenset({"default", "kube-system", "kube-public", "kube-node-lease"})


class Cluster:
    """The control plane, and the parts started beside it. `namespace` is where objects go that name none."""

    def __init__(
        self,
        home: Path,
        *,
        feature_gates: Mapping[str, bool] = FEATURE_GATES,
        apiserver_flags: Sequence[str] = (),
        etcd_flags: Sequence[str] = (),
    ) -> None:
        self.home = home
        self.namespace = "default"
        self.url = ""
        self.kubeconfig = home / "admin.kubeconfig"
        self.tokens = {user: secrets.token_hex(16) for user in USERS}
        self.feature_gates = dict(feature_gates)
        self._apiserver_flags = list(apiserver_flags)
        self._etcd_flags = list(etcd_flags)
        self._etcd: Part | None = None
        self._etcd_url = ""
        self._apiserver: Part | None = None
        self._api: Api | None = None
        self._beside: list[Part] = []
        self._made = 0

    # ── the control plane ───────────────────────────────────────────────────────────────────────────────────────────

    def __enter__(self) -> "Cluster":
        self.home.mkdir(parents=True, exist_ok=True)
        make_certificates(self.home)
        tokens = (f'{token},{user},{user},"{USERS[user]}"\n' for user, token in self.tokens.items())
        (self.home / "tokens.csv").write_text("".join(tokens))
        try:
            self._start_etcd()
            self._start_first_apiserver()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        self.stop_beside()
        if self._api is not None:
            self._api.close()
        # Nothing here outlives the folder, so nobody is asked to leave politely.
        for part in (self._apiserver, self._etcd):
            if part is not None:
                part.kill()

    @property
    def api(self) -> Api:
        """Requests as admin, straight to the server."""
        if self._api is None:
            raise PartFailedError("the cluster is not running")
        return self._api

    @property
    def apiserver(self) -> Part:
        if self._apiserver is None:
            raise PartFailedError("the cluster is not running")
        return self._apiserver

    @property
    def certificate(self) -> Path:
        """What the API server serves with, and the CA file of its clients; good for any server on 127.0.0.1."""
        return self.home / "serving" / "apiserver.crt"

    @property
    def key(self) -> Path:
        return self.home / "serving" / "apiserver.key"

    def kill_apiserver(self) -> None:
        """SIGKILL: connections break in the middle of whatever they were at."""
        self.apiserver.kill()

    def start_apiserver(self) -> None:
        """Again, at the same address."""
        self.apiserver.start(self._apiserver_ready)

    def restart_apiserver(self) -> None:
        self.kill_apiserver()
        self.start_apiserver()

    def compact_etcd(self) -> int:
        """Forget all history before now; the revision that is now the oldest.

        Watches are served from the API server's own cache, which keeps its window: clients see 410 when they resume
        from an older version after restart_apiserver(), or go on with an old `continue`.
        """
        revision = int(self._etcd_call("/v3/kv/range", {"key": base64.b64encode(b"x").decode()})["header"]["revision"])
        self._etcd_call("/v3/kv/compaction", {"revision": str(revision), "physical": True})
        return revision

    # ── who asks ────────────────────────────────────────────────────────────────────────────────────────────────────

    def token_for(self, service_account: str, seconds: int = 3600) -> str:
        """A fresh token of "namespace/name"; the account is made if there is none. The shortest life is 600 s."""
        namespace, _, name = service_account.rpartition("/")
        namespace = namespace or self.namespace
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts"
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}}
        try:
            self.api.post(path, account)
        except RefusedError as refused:
            if refused.reason != "AlreadyExists":
                raise
        asked = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"expirationSeconds": seconds},
        }
        token: str = self.api.post(f"{path}/{name}/token", asked)["status"]["token"]
        return token

    def kubeconfig_for(self, token: str, *, server: str | None = None, name: str = "") -> Path:
        """A kubeconfig file with a bearer token; `server` may be a proxy's url."""
        return self._write_kubeconfig(name or self._fresh("token"), {"token": token}, server)

    @property
    def scheduler_kubeconfig(self) -> Path:
        """The user system:kube-scheduler, with the rights that RBAC's bootstrap policy gives it."""
        return self.kubeconfig_for(self.tokens["system:kube-scheduler"], name="scheduler")

    @property
    def certified_kubeconfig(self) -> Path:
        """An administrator by client certificate. It cannot pass a proxy."""
        files = {"client-certificate": str(self.home / "admin.crt"), "client-key": str(self.home / "admin.key")}
        return self._write_kubeconfig("certified", files, None)

    def kubectl(self, *arguments: str, stdin: str | None = None) -> str:
        """What kubectl prints, as admin, in the cluster's namespace; CalledProcessError with its stderr if it fails."""
        environment = os.environ | {"KUBECONFIG": str(self.kubeconfig), "HOME": str(self.home)}
        command = [str(folder() / "kubectl"), "--namespace", self.namespace, *arguments]
        try:
            done = subprocess.run(
                command, input=stdin, env=environment, capture_output=True, text=True, check=True, timeout=KUBECTL_S
            )
        except subprocess.CalledProcessError as error:
            error.add_note(error.stderr)
            raise
        return done.stdout

    # ── objects ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def create(self, *items: Json) -> list[Json]:
        """Create objects of any kinds, many at a time; see objects.py for how to make them."""
        return self.api.create(items, self.namespace)

    def create_priority_classes(self, **values: int) -> None:
        """Create them, and wait until pods of them are admitted: kube-apiserver sees a new one a moment later."""
        self.create(*(objects.priority_class(name, value) for name, value in values.items()))
        path = f"/api/v1/namespaces/{self.namespace}/pods?dryRun=All"

        def admitted() -> bool:
            try:
                for name in values:
                    self.api.post(path, objects.pod(f"of-{name}", priorityClassName=name))
            except RefusedError:
                return False
            return True

        wait_until(admitted, f"pods of {', '.join(values)} to be admitted")

    def hollow_nodes(self, count: int, prefix: str = "node", *, zones: int = 0, **fields: Any) -> list[str]:
        """Ready nodes for kwok's kubelets, spread over so many `zones`; their names. `fields` as objects.node's."""
        labels = fields.pop("labels", {})
        names = [f"{prefix}-{number}" for number in range(count)]
        self.create(
            *(
                objects.node(
                    name,
                    labels=labels | ({"topology.kubernetes.io/zone": f"zone-{row % zones}"} if zones else {}),
                    **fields,
                )
                for row, name in enumerate(names)
            )
        )
        return names

    def pods(self, namespace: str | None = None) -> list[Json]:
        return self.api.items(f"/api/v1/namespaces/{namespace or self.namespace}/pods")

    def pod(self, name: str, namespace: str | None = None) -> Json | None:
        try:
            return self.api.get(f"/api/v1/namespaces/{namespace or self.namespace}/pods/{name}")
        except RefusedError as refused:
            if refused.status == http.client.NOT_FOUND:
                return None
            raise

    def bound(self, namespace: str | None = None) -> dict[str, str]:
        """Pod → node, for the pods that have one."""
        pods = self.pods(namespace)
        return {pod["metadata"]["name"]: pod["spec"]["nodeName"] for pod in pods if pod["spec"].get("nodeName")}

    def wait_for_phase(self, *names: str, phase: str = "Running", within_s: float = 30.0) -> None:
        def reached() -> bool:
            phases = {pod["metadata"]["name"]: pod["status"]["phase"] for pod in self.pods()}
            return all(phases.get(name) == phase for name in names)

        wait_until(reached, f"{', '.join(names)} to be {phase}", within_s)

    def wait_for_bound(self, *names: str, within_s: float = 30.0) -> dict[str, str]:
        """Pod → node of all bound pods, once these are among them."""
        wait_until(lambda: set(names) <= self.bound().keys(), f"{len(names)} pods to be bound", within_s)
        return self.bound()

    def new_namespace(self, name: str) -> str:
        self.api.post("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        return name

    def wipe(self) -> None:
        """Stop what was started beside the control plane, and remove what tests make."""
        self.stop_beside()
        if not self.apiserver.running:
            self.start_apiserver()
        for path in (*EVERYWHERE, *CLUSTER_WIDE):
            self._remove_all(path)
        for item in self.api.items("/api/v1/namespaces"):
            if item["metadata"]["name"] not in KEPT_NAMESPACES:
                self._remove_namespace(item["metadata"]["name"])

    # ── parts beside the control plane ──────────────────────────────────────────────────────────────────────────────

    def kwok(self, lease_s: int = 0) -> Part:
        """kwok's kubelets, for the nodes annotated for them (all of hollow_nodes). `lease_s`: of their leases."""
        port = free_ports(1)[0]
        stages = Path(__file__).resolve().parent / "kwok" / "stages.yaml"
        # No test looks for the leases of nodes, and five thousand of them would be five hundred writes a second.
        flags = (
            "--manage-all-nodes=false",
            f"--manage-nodes-with-annotation-selector={objects.KWOK_ANNOTATION}=fake",
            f"--node-lease-duration-seconds={lease_s}",
        )
        files = (f"--kubeconfig={self.kubeconfig}", f"--config={stages}", f"--server-address=127.0.0.1:{port}")
        # Its defaults file is looked for under HOME.
        part = Part("kwok", [folder() / "kwok", *files, *flags], self.home / "kwok.log", {"HOME": str(self.home)})
        for tries_left in (2, 1, 0):
            try:
                self.beside(part, lambda: answers(f"http://127.0.0.1:{port}/healthz"))
                break
            except PartFailedError:
                # kwok v0.8.0 now and then dies at its start, of a map that two of its goroutines write to.
                if not tries_left or KWOK_RACE not in part.said():
                    raise
        return part

    def kube_scheduler(
        self, config: Json | None = None, *, kubeconfig: Path | None = None, flags: Sequence[str] = ()
    ) -> "Scheduler":
        """The peer. `config`: fields of a KubeSchedulerConfiguration; leader election is off unless they turn it on."""
        return self.scheduler(
            "kube-scheduler", [folder() / "kube-scheduler"], config, kubeconfig=kubeconfig, flags=flags
        )

    def situate(
        self, config: Json | None = None, *, kubeconfig: Path | None = None, flags: Sequence[str] = ()
    ) -> "Scheduler":
        """`situate scheduler`, by the interpreter that runs the tests."""
        command = [sys.executable, "-m", "situate", "scheduler"]
        return self.scheduler("situate", command, config, kubeconfig=kubeconfig, flags=flags)

    def scheduler(
        self,
        name: str,
        command: Sequence[str | Path],
        config: Json | None = None,
        *,
        kubeconfig: Path | None = None,
        flags: Sequence[str] = (),
        ready: str = "/readyz",
    ) -> "Scheduler":
        """Any scheduler with kube-scheduler's flags, as system:kube-scheduler unless told; `ready` has answered 200."""
        name = self._fresh(name)
        url = f"https://127.0.0.1:{free_ports(1)[0]}"
        access = kubeconfig or self.scheduler_kubeconfig
        whole = {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "leaderElection": {"leaderElect": False},
            **(config or {}),
        }
        whole["clientConnection"] = {"kubeconfig": str(access), **whole.get("clientConnection", {})}
        file = self.home / f"{name}.config.yaml"
        file.write_text(json.dumps(whole, indent=1))
        given = (
            f"--config={file}",
            f"--authentication-kubeconfig={access}",
            f"--authorization-kubeconfig={access}",
            "--bind-address=127.0.0.1",
            f"--secure-port={urlsplit(url).port}",
            f"--cert-dir={self.home / name}",
            f"--feature-gates={as_flag(self.feature_gates)}",
        )
        part = Scheduler(name, [*command, *given, *flags], self.home / f"{name}.log")
        part.url, part.config = url, file
        self.beside(part, lambda: answers(url + ready))
        return part

    def situate_part(self, name: str, flags: Sequence[str] = ()) -> Part:
        """`situate controllers`, `situate node`: as administrator, in a process of their own."""
        command = [sys.executable, "-m", "situate", name, "--kubeconfig", str(self.kubeconfig), *flags]
        part = Part(f"situate {name}", command, self.home / f"{self._fresh(name)}.log")
        self.beside(part)
        return part

    def beside(self, part: Part, ready: Callable[[], object] | None = None) -> None:
        """Start a part that wipe() will stop."""
        self._beside.append(part)
        part.start(ready)

    def stop_beside(self) -> None:
        while self._beside:
            self._beside.pop().stop()

    # ── how ─────────────────────────────────────────────────────────────────────────────────────────────────────────

    def _start_etcd(self) -> None:
        for attempt in range(PORT_TRIES):
            client, peer = (f"http://127.0.0.1:{port}" for port in free_ports(2))
            data = self.home / f"etcd-{attempt}"
            flags = (
                f"--data-dir={data}",
                f"--listen-client-urls={client}",
                f"--advertise-client-urls={client}",
                f"--listen-peer-urls={peer}",
                f"--initial-advertise-peer-urls={peer}",
                f"--initial-cluster=default={peer}",
                "--unsafe-no-fsync",
                f"--quota-backend-bytes={8 << 30}",
                "--log-level=warn",
            )
            self._etcd_url = client
            self._etcd = Part("etcd", [folder() / "etcd", *flags, *self._etcd_flags], self.home / f"etcd-{attempt}.log")
            if start_unless_taken(self._etcd, lambda: answers(f"{self._etcd_url}/health")):
                return
        raise PartFailedError(f"no free port for etcd in {PORT_TRIES} tries")

    def _start_first_apiserver(self) -> None:
        for attempt in range(PORT_TRIES):
            port = free_ports(1)[0]
            self.url = f"https://127.0.0.1:{port}"
            flags = [*self._flags_of_apiserver(port), *self._apiserver_flags]
            self._apiserver = Part(
                "kube-apiserver", [folder() / "kube-apiserver", *flags], self.home / f"apiserver-{attempt}.log"
            )
            if start_unless_taken(self._apiserver, self._apiserver_ready):
                break
        else:
            raise PartFailedError(f"no free port for kube-apiserver in {PORT_TRIES} tries")
        tls = ssl.create_default_context(cafile=str(self.certificate))
        self._api = Api(self.url, self.tokens["admin"], tls)
        self._write_kubeconfig("admin", {"token": self.tokens["admin"]}, None)

    def _flags_of_apiserver(self, port: int) -> tuple[str, ...]:
        return (
            f"--etcd-servers={self._etcd_url}",
            "--bind-address=127.0.0.1",
            "--advertise-address=127.0.0.1",
            f"--secure-port={port}",
            f"--cert-dir={self.home / 'serving'}",
            # A loopback address may not be an endpoint of the `kubernetes` service, and nobody here needs that service.
            "--endpoint-reconciler-type=none",
            "--service-cluster-ip-range=10.96.0.0/16",
            "--authorization-mode=RBAC",
            f"--token-auth-file={self.home / 'tokens.csv'}",
            f"--client-ca-file={self.home / 'client-ca.crt'}",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={self.home / 'service-accounts.key'}",
            f"--service-account-signing-key-file={self.home / 'service-accounts.key'}",
            f"--disable-admission-plugins={','.join(WITHOUT_CONTROLLERS)}",
            f"--feature-gates={as_flag(self.feature_gates)}",
            f"--runtime-config={as_flag(RUNTIME_CONFIG)}",
            "--allow-privileged=true",
            "--profiling=false",
        )

    def _apiserver_ready(self) -> bool:
        return answers(f"{self.url}/readyz")

    def _etcd_call(self, path: str, body: Json) -> Json:
        request = urllib.request.Request(f"{self._etcd_url}{path}", json.dumps(body).encode())
        with urllib.request.urlopen(request, timeout=KUBECTL_S) as response:
            answer: Json = json.load(response)
            return answer

    def _write_kubeconfig(self, name: str, user: Json, server: str | None) -> Path:
        endpoint = {"server": server or self.url, "certificate-authority": str(self.certificate)}
        whole = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "test", "cluster": endpoint}],
            "users": [{"name": name, "user": user}],
            "contexts": [{"name": name, "context": {"cluster": "test", "user": name, "namespace": self.namespace}}],
            "current-context": name,
        }
        path = self.home / f"{name}.kubeconfig"
        path.write_text(json.dumps(whole, indent=1))
        path.chmod(0o600)
        return path

    def _remove_all(self, path: str) -> None:
        """Every object of a kind, whatever finalizers it has, but the two system- priority classes."""
        root, _, resource = path.rpartition("/")

        def remove(item: Json) -> Json:
            metadata = item["metadata"]
            inside = f"/namespaces/{metadata['namespace']}" if "namespace" in metadata else ""
            return self._remove(f"{root}{inside}/{resource}/{metadata['name']}", metadata)

        found = self._items_or_none(path)
        self.api.many(remove, [item for item in found if not item["metadata"]["name"].startswith("system-")])

    def _remove(self, path: str, metadata: Json) -> Json:
        try:
            if metadata.get("finalizers"):
                self.api.patch(path, {"metadata": {"finalizers": None}})
            return self.api.delete(path)
        except RefusedError as refused:
            if refused.status == http.client.NOT_FOUND:
                return {}
            raise

    def _items_or_none(self, path: str) -> Iterable[Json]:
        try:
            return self.api.items(path)
        except RefusedError as refused:
            if refused.status == http.client.NOT_FOUND:
                return ()
            raise

    def _remove_namespace(self, name: str) -> None:
        self.api.delete(f"/api/v1/namespaces/{name}")
        item = self.api.get(f"/api/v1/namespaces/{name}")
        item["spec"]["finalizers"] = []
        self.api.put(f"/api/v1/namespaces/{name}/finalize", item)

    def _fresh(self, name: str) -> str:
        """A name for files: no two parts of one cluster share a log."""
        self._made += 1
        return f"{name}-{self._made}"


class Scheduler(Part):
    """A scheduler's process, where it serves, and its configuration file."""

    url: str = ""
    config: Path = Path()

    def get(self, path: str, token: str = "") -> str:
        """What it answers at /metrics, /configz and so on; HTTPError when it refuses."""
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        with urllib.request.urlopen(
            urllib.request.Request(self.url + path, headers=headers), context=UNVERIFIED
        ) as response:
            text: str = response.read().decode()
            return text


# Ready or not is all that is asked this way; the clients under test verify what they talk to.
UNVERIFIED = ssl._create_unverified_context()


def answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(
            url, timeout=2, context=UNVERIFIED if url.startswith("https") else None
        ) as response:
            return bool(response.status == http.client.OK)
    except (OSError, http.client.HTTPException):
        return False


KWOK_RACE = "fatal error: concurrent map"


def start_unless_taken(part: Part, ready: Callable[[], object]) -> bool:
    """False if somebody else was quicker to the port."""
    try:
        part.start(ready)
    except PartFailedError:
        if IN_USE in part.said():
            return False
        raise
    return True


def as_flag(settings: Mapping[str, bool]) -> str:
    return ",".join(f"{name}={str(on).lower()}" for name, on in settings.items())
