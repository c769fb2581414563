"""Every metric that kube-scheduler calls STABLE or BETA is shown by situate too, with its type, labels and buckets."""

import re
import ssl
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass, field

from kubernetes.cluster import Cluster, Scheduler
from kubernetes.objects import pod
from kubernetes.parts import wait_until
from situate.loop.metrics_table import FAMILIES

HELD_TO = re.compile(r"# HELP (scheduler_\w+) \[(STABLE|BETA)\]")
SERIES = re.compile(r"(\w+?)(?:_bucket|_sum|_count)?(?:\{(.*)\})? \S+")


@dataclass
class Shown:
    """What one metric looks like from outside."""

    kind: str = ""
    labels: set[str] = field(default_factory=set)
    bounds: set[str] = field(default_factory=set)


def read(text: str) -> dict[str, Shown]:
    found: dict[str, Shown] = {}
    for line in text.splitlines():
        if line.startswith("# TYPE"):
            _, _, name, kind = line.split()
            found.setdefault(name, Shown()).kind = kind
        elif not line.startswith("#") and (series := SERIES.fullmatch(line)) is not None:
            labels = dict(re.findall(r'(\w+)="([^"]*)"', series[2] or ""))
            shown = found.get(series[1]) or found.get(line.split("{")[0].split()[0]) or Shown()
            if "le" in labels:
                shown.bounds.add(labels.pop("le"))
            shown.labels |= set(labels)
    return found


def fetch(cluster: Cluster, url: str) -> str:
    tls = ssl.create_default_context()
    tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE
    asked = urllib.request.Request(f"{url}/metrics", headers={"Authorization": f"Bearer {cluster.tokens['admin']}"})
    with urllib.request.urlopen(asked, context=tls) as answer:
        text: str = answer.read().decode()
    return text


def after_work(cluster: Cluster, start: Callable[[Cluster], Scheduler]) -> str:
    """What a scheduler shows that placed a pod, refused another, and evicted for a third."""
    scheduler = start(cluster)
    name = scheduler.name
    cluster.create(pod(f"{name}-low", cpu="3", priorityClassName="low"), pod(f"{name}-large", cpu="9"))
    wait_until(lambda: f"{name}-low" in cluster.bound(), "the pod to be bound")
    cluster.create(pod(f"{name}-high", cpu="3", priorityClassName="high"))
    wait_until(lambda: f"{name}-high" in cluster.bound(), "the victim's place to be taken")
    text = fetch(cluster, scheduler.url)
    scheduler.stop()
    for left in cluster.bound():
        cluster.api.delete(f"/api/v1/namespaces/{cluster.namespace}/pods/{left}?gracePeriodSeconds=0")
    return text


def test_what_kube_scheduler_promises_to_show_is_shown(cluster: Cluster) -> None:
    cluster.create_priority_classes(low=1, high=100)
    cluster.hollow_nodes(1, cpu="4")
    cluster.kwok()
    theirs = after_work(cluster, Cluster.kube_scheduler)
    promised = [name for name, _ in HELD_TO.findall(theirs)]
    assert len(promised) > 10
    known, shown = read(theirs), read(after_work(cluster, Cluster.situate))
    ours = {family.name: family for family in FAMILIES}
    for name in promised:
        assert shown[name].kind == known[name].kind
        assert set(ours[name].labels) == known[name].labels
        assert {*(f"{bound:g}" for bound in ours[name].bounds)} == {
            f"{float(bound):g}" for bound in known[name].bounds if bound != "+Inf"
        }
        if shown[name].labels:
            assert (name, shown[name].labels, shown[name].bounds) == (name, known[name].labels, known[name].bounds)
