"""situate's own control plane in the place of etcd and kube-apiserver: the same fixture, the same parts beside it.

    with OwnCluster(folder) as cluster: ...                                   the API alone
    with OwnCluster(folder, "--with", "controllers", "--nodes", "3") as cluster: ...

Identities are bearer tokens, as on the other one: an administrator's and system:kube-scheduler's.
"""

import hashlib
import json
import shutil
import ssl
import sys
from pathlib import Path

from kubernetes.api import Api
from kubernetes.cluster import USERS, Cluster, Scheduler
from kubernetes.parts import Part, wait_until

START_S = 90.0
"""As `situate up` gives a control plane: a busy machine may need it."""
SECRET = 0o600


class OwnCluster(Cluster):
    """`situate server`, with these flags; on a file of its own unless they name a store."""

    def __init__(self, home: Path, *flags: str, trusts: "OwnCluster | None" = None) -> None:
        """`trusts`: another server of the same cluster, whose certificates and tokens are to hold here, too."""
        super().__init__(home)
        self._flags = flags
        self._trusts = trusts
        if trusts is not None:
            self.tokens = trusts.tokens

    def __enter__(self) -> "OwnCluster":
        self.home.mkdir(parents=True, exist_ok=True)
        if self._trusts is not None:
            shutil.copytree(self._trusts.home / "pki", self.home / "pki")
        self._write_tokens()
        command = [*self._command(), "server", "--port", "0", "--dir", str(self.home), *self._flags]
        self._apiserver = Part("situate server", command, self.home / "server.log")
        try:
            self.start_apiserver()
        except BaseException:
            self.stop()
            raise
        tls = ssl.create_default_context(cafile=str(self.certificate))
        self._api = Api(self.url, self.tokens["admin"], tls)
        self._write_kubeconfig("admin", {"token": self.tokens["admin"]}, None)
        return self

    def _command(self) -> list[str]:
        return [sys.executable, "-m", "situate"]

    def __exit__(self, *_: object) -> None:
        """What is left of it must have stopped by itself, and well."""
        self.stop_beside()
        was_running = self.apiserver.running
        code = self.apiserver.stop()
        self.stop()
        if was_running and code:
            raise AssertionError(f"situate server ended with exit code {code}\n{self.apiserver.tail()}")

    @property
    def certificate(self) -> Path:
        return self.home / "pki" / "ca.crt"

    def start_apiserver(self) -> None:
        """At a free port, which may be another than before."""
        state = self.home / "server.json"
        state.unlink(missing_ok=True)
        self.apiserver.start(state.exists, START_S)
        self.url = json.loads(state.read_text())["url"]

    def own_scheduler(self, *flags: str) -> Scheduler:
        """`situate scheduler --server`, as administrator, like the one inside; it is not waited for."""
        name = self._fresh("situate-scheduler")
        command = [sys.executable, "-m", "situate", "scheduler", "--server", str(self.home), "--secure-port=0"]
        part = Scheduler(name, [*command, *flags], self.home / f"{name}.log")
        self.beside(part, lambda: '"Caches are synced"' in part.said())
        return part

    def wait_for_nodes(self, count: int, within_s: float = 30.0) -> None:
        def ready() -> bool:
            conditions = (node["status"].get("conditions", ()) for node in self.api.items("/api/v1/nodes"))
            return sum(any((c["type"], c["status"]) == ("Ready", "True") for c in all_) for all_ in conditions) == count

        wait_until(ready, f"{count} nodes to be ready", within_s)

    def _write_tokens(self) -> None:
        known = [
            {"sha256": hashlib.sha256(token.encode()).hexdigest(), "user": user, "groups": USERS[user].split()}
            for user, token in self.tokens.items()
        ]
        path = self.home / "tokens.json"
        path.write_text(json.dumps(known))
        path.chmod(SECRET)
