"""Kueue as its `kubectl apply -k config/default` installs it, and jobs that it admits.

That is: definitions, webhooks with certificates of Kueue's own, rights, and the manager as a Deployment, here on a
process node.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from kubernetes.judges.common import BUILD, PARTS, JudgeError, Outcome
from kubernetes.judges.kueue_performance import go_build
from kubernetes.judges.planes import plane
from kubernetes.own_cluster import OwnCluster
from kubernetes.parts import wait_until

START_S = 300.0
"""Kueue makes its certificates first."""
JOB_S = 120.0
NAMESPACE = "kueue-system"
SECRET = "kueue-webhook-server-cert"
MAX_REASON = 300
RUN = """
account=$SITUATE_SERVICE_ACCOUNT
cat > kubeconfig <<END
{{apiVersion: v1, kind: Config, current-context: it,
  clusters: [{{name: it, cluster: {{server: "{url}", certificate-authority: $account/ca.crt}}}}],
  users: [{{name: it, user: {{tokenFile: $account/token}}}}],
  contexts: [{{name: it, context: {{cluster: it, user: it}}}}]}}
END
mkdir certificates
sed -e "s|^webhook:|webhook:\\n  certDir: $PWD/certificates|" \\
    -e "s|^leaderElection:|leaderElection:\\n  resourceNamespace: {namespace}|" \\
    "$SITUATE_VOLUME_MANAGER_CONFIG/controller_manager_config.yaml" > config.yaml
until test -s certificates/tls.crt; do
    for file in ca.crt tls.key tls.crt; do
        {programs}/kubectl --kubeconfig kubeconfig get secret {secret} --namespace {namespace} \\
            --output "go-template={{{{if .data}}}}{{{{index .data \\"$file\\" | base64decode}}}}{{{{end}}}}" > new &&
            mv new certificates/$file
    done
    sleep 1
done &
exec {programs}/kueue --config=config.yaml --kubeconfig=kubeconfig --zap-log-level=2 \\
    --feature-gates=VisibilityOnDemand=false
"""
"""What an image and a kubelet do elsewhere: the API server's address, and the Secret that Kueue fills while it runs.
Kueue's aggregated API is left out: it writes its certificate to /visibility, where nothing is mounted here."""
QUEUES = """
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: any}
---
apiVersion: kueue.x-k8s.io/v1beta1
kind: ClusterQueue
metadata: {name: all}
spec:
  namespaceSelector: {}
  resourceGroups:
  - coveredResources: [cpu]
    flavors: [{name: any, resources: [{name: cpu, nominalQuota: 1}]}]
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: mine, namespace: default}
spec: {clusterQueue: all}
"""
WORKLOADS = "/apis/kueue.x-k8s.io/v1beta2/namespaces/default/workloads"
JOBS = "/apis/batch/v1/namespaces/default/jobs"


FLAGS = ("--with", "scheduler", "--with", "controllers", "--nodes", "0", "--process-node")


@dataclass(frozen=True, slots=True)
class Installed:
    cluster: OwnCluster
    programs: Path
    """Where the containers' user may read them."""

    @property
    def release(self) -> Path:
        """Jobs end when this file exists."""
        return self.programs / "release"

    def wait(self, within_s: float, *arguments: str) -> None:
        """`kubectl wait`, again until the time is up: it does not wait for what does not exist yet."""

        def reached() -> bool:
            try:
                self.cluster.kubectl("wait", "--timeout=1s", *arguments)
            except subprocess.CalledProcessError:
                return False
            return True

        wait_until(reached, " ".join(arguments), within_s)

    def job(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = self.cluster.api.get(f"{JOBS}/{name}")
        return found


def install(source: Path) -> Outcome:
    with _programs(source) as programs, plane(BUILD / "kueue" / "plane", *FLAGS) as cluster:
        cluster.wait_for_nodes(1)
        _apply(cluster, _manifests(source, cluster, programs))
        return _try_all(Installed(cluster, programs))


@contextmanager
def _programs(source: Path) -> Iterator[Path]:
    built = go_build(source, "./cmd/kueue")
    with tempfile.TemporaryDirectory(prefix="kueue-") as folder:
        programs = Path(folder)
        programs.chmod(0o755)
        for program in (built, PARTS / "kubectl"):
            shutil.copy(program, programs)
        yield programs


def _manifests(source: Path, cluster: OwnCluster, programs: Path) -> str:
    said = subprocess.run(
        [PARTS / "kubectl", "kustomize", source / "config" / "default"], check=True, capture_output=True, text=True
    )
    objects: list[dict[str, Any]] = list(yaml.safe_load_all(said.stdout))
    for one in objects:
        if one["kind"] == "Deployment":
            (container,) = one["spec"]["template"]["spec"]["containers"]
            script = RUN.format(url=cluster.url, programs=programs, secret=SECRET, namespace=NAMESPACE)
            container.update(command=["sh", "-c", script], args=[])
    return "\n---\n".join(json.dumps(one) for one in objects)


def _apply(cluster: OwnCluster, manifests: str) -> None:
    """In several namespaces: `cluster.kubectl` would name one."""
    command: list[str | Path] = [PARTS / "kubectl", "--kubeconfig", cluster.kubeconfig, "apply", "--server-side"]
    done = subprocess.run([*command, "-f", "-"], input=manifests, capture_output=True, text=True, check=False)
    if done.returncode:
        raise JudgeError(f"Kueue's objects are refused: {done.stderr[:MAX_REASON]}")


def _try_all(at: Installed) -> Outcome:
    """Each step builds upon those before it."""
    outcome = Outcome()
    for step in STEPS:
        name = f"install: {step.__name__.replace('_', ' ')}"
        try:
            step(at)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is this step's verdict
            outcome.failed[name] = f"{type(error).__name__}: {error}"[:MAX_REASON]
            break
        outcome.passed.add(name)
    print(f"  install: {len(outcome.passed)} passed, {len(outcome.failed)} failed", flush=True)
    return outcome


def manager_becomes_available(at: Installed) -> None:
    at.wait(START_S, "--for=condition=Available", "deployment", "--all", "--namespace", NAMESPACE)


def queues_in_both_versions_become_active(at: Installed) -> None:
    at.cluster.kubectl("apply", "-f", "-", stdin=QUEUES)
    at.wait(JOB_S, "--for=condition=Active", "clusterqueue/all", "localqueue/mine")


def a_job_is_admitted_and_runs(at: Installed) -> None:
    at.cluster.create(_job("first", at.release))
    wait_until(lambda: at.job("first").get("status", {}).get("active") == 1, "the first job to run", JOB_S)


def a_job_beyond_the_quota_waits(at: Installed) -> None:
    at.cluster.create(_job("second", at.release))
    wait_until(lambda: _reserved(at, "second") == "False", "the second job's workload to be told to wait", JOB_S)
    if not at.job("second")["spec"]["suspend"]:
        raise AssertionError("the second job is not suspended")


def a_running_job_may_not_change_its_queue(at: Installed) -> None:
    try:
        at.cluster.kubectl("label", "--overwrite", "job/first", "kueue.x-k8s.io/queue-name=other")
    except subprocess.CalledProcessError as error:
        if "vjob.kb.io" not in error.stderr:
            raise
    else:
        raise AssertionError("its queue was changed")


def both_jobs_complete(at: Installed) -> None:
    at.release.touch()
    at.wait(JOB_S, "--for=condition=Complete", "job/first", "job/second")
    wait_until(lambda: _finished(at) == 2, "both workloads to be finished", JOB_S)


STEPS: tuple[Callable[[Installed], None], ...] = (
    manager_becomes_available,
    queues_in_both_versions_become_active,
    a_job_is_admitted_and_runs,
    a_job_beyond_the_quota_waits,
    a_running_job_may_not_change_its_queue,
    both_jobs_complete,
)


def _job(name: str, release: Path) -> dict[str, Any]:
    """It asks for all of the quota."""
    container = {
        "name": "main",
        "image": "none",
        "command": ["sh", "-c", f"until test -e {release}; do sleep 0.2; done"],
        "resources": {"requests": {"cpu": "1"}},
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "labels": {"kueue.x-k8s.io/queue-name": "mine"}},
        "spec": {"template": {"spec": {"containers": [container], "restartPolicy": "Never"}}},
    }


def _reserved(at: Installed, job: str) -> str:
    """The status of the condition QuotaReserved of this job's workload; empty as long as it has none."""
    for one in at.cluster.api.items(WORKLOADS):
        if any(owner["name"] == job for owner in one["metadata"].get("ownerReferences", ())):
            return _condition(one, "QuotaReserved")
    return ""


def _finished(at: Installed) -> int:
    return sum(_condition(one, "Finished") == "True" for one in at.cluster.api.items(WORKLOADS))


def _condition(workload: dict[str, Any], kind: str) -> str:
    conditions = workload.get("status", {}).get("conditions", ())
    return next((one["status"] for one in conditions if one["type"] == kind), "")
