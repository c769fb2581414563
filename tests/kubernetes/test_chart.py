"""The Helm chart makes what the kustomize variants make, and the API server takes it."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from deploy.rights import KUSTOMIZE, ROOT
from kubernetes.cluster import Cluster
from kubernetes.objects import Json
from kubernetes.parts import folder
from situate.wire.config import load_config

CHART = ROOT / "deploy" / "helm" / "situate"
HELM = folder() / "helm"
TIMEOUT_S = 60.0
# Helm says by these which release an object is of; kustomize has no releases.
OF_THE_RELEASE = (
    "helm.sh/chart",
    "app.kubernetes.io/instance",
    "app.kubernetes.io/version",
    "app.kubernetes.io/managed-by",
)
NAMESPACE = "situate-system"

if not os.access(HELM, os.X_OK):
    pytest.skip(f"the chart's tests need helm in {HELM.parent}: `make helm` builds it", allow_module_level=True)

EVERYTHING = """
fullnameOverride: other
replicas: 3
image: {repository: registry.test/situate, tag: "9", pullPolicy: Always}
imagePullSecrets: [{name: secret}]
schedulerNames: [one, two]
preemption: {enabled: true}
lease: {name: chosen, namespace: kube-system}
config: {percentageOfNodesToScore: 100, clientConnection: {qps: 500, burst: 1000}}
extraArgs: [--v=2, --logging-format=json]
extraEnv: [{name: A, value: b}]
resources: {limits: {memory: 1Gi}}
priorityClassName: system-node-critical
nodeSelector: {kubernetes.io/os: linux}
tolerations: [{key: node-role.kubernetes.io/control-plane, operator: Exists, effect: NoSchedule}]
topologySpreadConstraints:
  - {maxSkew: 1, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: ScheduleAnyway, labelSelector: {}}
podAnnotations: {a: b}
podLabels: {c: d}
disruptionBudget: {minAvailable: 2}
serviceAccount: {annotations: {e: f}}
web: {enabled: true, rights: true, hosts: [page.example.com], tlsSecret: page-tls, resources: {limits: {memory: 2Gi}}}
"""


def run(*command: str | Path, stdin: str | None = None, **environment: str) -> subprocess.CompletedProcess[str]:
    words = [str(word) for word in command]
    env = os.environ | environment
    return subprocess.run(words, input=stdin, env=env, capture_output=True, text=True, check=False, timeout=TIMEOUT_S)


def template(home: Path, *flags: str, release: str = "situate", values: str = "{}") -> str:
    folders = {f"HELM_{kind}_HOME": str(home / kind) for kind in ("CACHE", "CONFIG", "DATA")}
    done = run(
        HELM, "template", release, CHART, "--namespace", NAMESPACE, "--values=-", *flags, stdin=values, **folders
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def kustomized(variant: str) -> list[Json]:
    done = run(folder() / "kubectl", "kustomize", KUSTOMIZE / variant)
    assert done.returncode == 0, done.stderr
    return list(yaml.safe_load_all(done.stdout))


def plain(found: Any) -> Any:
    """Without the labels of a release."""
    if isinstance(found, dict):
        return {key: plain(value) for key, value in found.items() if key not in OF_THE_RELEASE}
    return [plain(one) for one in found] if isinstance(found, list) else found


def compared(items: list[Json]) -> dict[str, Json]:
    """By kind, namespace and name; with the configuration read, and without the namespace, which Helm makes itself."""
    found = {}
    for item in items:
        if item["kind"] == "Namespace":
            continue
        meta = item["metadata"]
        one = plain(item)
        if item["kind"] == "ConfigMap":
            one["data"] = {name: yaml.safe_load(text) for name, text in item.get("data", {}).items()}
            one["metadata"].pop("annotations", None)  # Helm's resource-policy
        found[f"{item['kind']} {meta.get('namespace', '')}/{meta['name']}"] = one
    return found


@pytest.mark.parametrize(
    "flags, variant",
    [
        pytest.param([], "base", id="as it stands"),
        pytest.param(["--set=preemption.enabled=true"], "overlays/preemption", id="with preemption"),
        pytest.param([f"--values={CHART / 'values-instead.yaml'}"], "overlays/instead", id="instead of kube-scheduler"),
        pytest.param(["--set=web.enabled=true"], "overlays/web", id="with the page"),
    ],
)
def test_the_chart_makes_what_kustomize_makes(flags: list[str], variant: str, tmp_path: Path) -> None:
    made = list(yaml.safe_load_all(template(tmp_path, *flags)))
    assert compared(made) == compared(kustomized(variant))


def test_the_chart_makes_the_page_with_rights_as_kustomize_does(tmp_path: Path) -> None:
    made = list(yaml.safe_load_all(template(tmp_path, "--set=web.enabled=true,web.rights=true")))
    overlay = tmp_path / "overlay"
    overlay.mkdir()
    parts = {"resources": ["base"], "components": ["components/web", "components/web-rights"]}
    named = {key: [os.path.relpath(KUSTOMIZE / one, overlay) for one in values] for key, values in parts.items()}
    (overlay / "kustomization.yaml").write_text(yaml.safe_dump(named))
    assert compared(made) == compared(kustomized(str(overlay)))


@pytest.mark.parametrize(
    "release, values",
    [
        pytest.param("situate", "{}", id="as it stands"),
        pytest.param("situate", EVERYTHING, id="with every value"),
        pytest.param("second", "{schedulerNames: [second]}", id="another release"),
        pytest.param(
            "lean",
            "{disruptionBudget: {enabled: false}, service: {enabled: false}, priorityClassName: '', resources: {}}",
            id="with as little as can be",
        ),
    ],
)
def test_what_the_chart_makes_is_taken_by_the_server(
    cluster: Cluster, release: str, values: str, tmp_path: Path
) -> None:
    cluster.new_namespace(NAMESPACE)
    made = template(tmp_path, release=release, values=values)
    apply = ("apply", "--server-side", "--dry-run=server", "--warnings-as-errors", "--filename=-")
    done = run(folder() / "kubectl", *apply, stdin=made, KUBECONFIG=str(cluster.kubeconfig), HOME=str(cluster.home))
    assert done.returncode == 0, done.stderr
    name = {"situate": "other" if values == EVERYTHING else "situate"}.get(release, f"{release}-situate")
    assert f"deployment.apps/{name} serverside-applied" in done.stdout


def test_every_value_is_in_what_the_chart_makes(tmp_path: Path) -> None:
    items = compared(list(yaml.safe_load_all(template(tmp_path, values=EVERYTHING))))
    config = items[f"ConfigMap {NAMESPACE}/other"]["data"]["config.yaml"]
    read = load_config(json.dumps(config).encode())
    assert [profile.scheduler_name for profile in read.profiles] == ["one", "two"]
    assert (read.leader_election.resource_name, read.client_connection.burst) == ("chosen", 1000)
    assert "Role kube-system/other-lease" in items
    assert "ClusterRole /other-preemption" in items
    spec = items[f"Deployment {NAMESPACE}/other"]["spec"]
    inside = spec["template"]["spec"]
    [container] = inside["containers"]
    assert (spec["replicas"], inside["priorityClassName"]) == (3, "system-node-critical")
    assert container["image"] == "registry.test/situate:9"
    assert container["args"] == ["scheduler", "--config=/etc/situate/config.yaml", "--v=2", "--logging-format=json"]
    assert {"nodeSelector", "tolerations", "topologySpreadConstraints", "imagePullSecrets"} <= inside.keys()
    page = items[f"Deployment {NAMESPACE}/other-web"]["spec"]["template"]["spec"]
    [container] = page["containers"]
    assert container["args"] == [
        "web",
        "--address=0.0.0.0",
        "--tls-san=page.example.com",
        "--tls-cert-file=/etc/situate-web/tls.crt",
        "--tls-private-key-file=/etc/situate-web/tls.key",
    ]
    assert container["image"] == "registry.test/situate:9"
    assert [volume.get("secret") for volume in page["volumes"]] == [None, {"secretName": "page-tls"}]
    assert "ClusterRole /other-web" in items


@pytest.mark.parametrize(
    "values",
    [
        pytest.param("{replica: 3}", id="a value that there is not"),
        pytest.param("{schedulerNames: []}", id="no scheduler name"),
        pytest.param("{config: {leaderElection: {leaderElect: false}}}", id="what another value says already"),
    ],
)
def test_values_that_cannot_be_meant_are_refused(values: str) -> None:
    done = run(HELM, "template", "situate", CHART, "--values=-", stdin=values)
    assert done.returncode != 0
    assert "values don't meet the specifications of the schema" in done.stderr


def test_a_release_is_installed_upgraded_and_removed(cluster: Cluster, tmp_path: Path) -> None:
    places = {f"HELM_{kind}_HOME": str(tmp_path / kind) for kind in ("CACHE", "CONFIG", "DATA")}
    places |= {"KUBECONFIG": str(cluster.kubeconfig), "HOME": str(cluster.home)}

    def helm(*words: str | Path) -> str:
        done = run(HELM, *words, "--namespace", NAMESPACE, **places)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def roles() -> set[str]:
        found = cluster.api.items("/apis/rbac.authorization.k8s.io/v1/clusterroles")
        return {item["metadata"]["name"] for item in found if "situate" in item["metadata"]["name"]}

    said = helm("install", "situate", CHART, "--create-namespace", "--set=preemption.enabled=true")
    assert "schedules the pods whose schedulerName is situate, and may evict others for them." in said
    assert roles() == {"situate", "situate-preemption"}
    helm("upgrade", "situate", CHART, "--set=preemption.enabled=false")
    assert roles() == {"situate"}, "what only preemption is allowed is taken back"
    helm("uninstall", "situate")
    assert roles() == set()


def test_helm_finds_nothing_wrong_with_the_chart() -> None:
    done = run(HELM, "lint", "--strict", CHART)
    assert done.returncode == 0, done.stdout + done.stderr
