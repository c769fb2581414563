"""The same commands on situate and on kube-apiserver: the same exit code, the same output, the same complaints."""

import difflib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest

from kubernetes.kubectl.sides import Outcome, Side, comparable, watching
from kubernetes.kubectl.steps import Script, Step, manifest, scripts, whole

SCRIPTS = scripts()
TOLD_LINES = 40


def play(side: Side, script: Script) -> list[Outcome]:
    side.run("default", f"create namespace {script.namespace}")
    return [comparable(step, side.step(script.namespace, step)) for step in script.steps]


def difference(step: Step, ours: Outcome, theirs: Outcome) -> str:
    told = [f"{step.says}: kubectl {step.command}"]
    if not ours.code == theirs.code == step.code:
        told.append(f"  exit code {ours.code} instead of {step.code}; kube-apiserver: {theirs.code}")
    for stream in ("out", "err"):
        expected, found = (getattr(one, stream).splitlines() for one in (theirs, ours))
        lines = list(difflib.unified_diff(expected, found, "kube-apiserver", "situate", lineterm="", n=1))
        told += [f"  {line}" for line in lines[:TOLD_LINES]]
    return "\n".join(told)


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.name)
def test_kubectl_prints_the_same_on_both_servers(script: Script, bare: Side, real: Side) -> None:
    with ThreadPoolExecutor(2) as both:
        ours, theirs = both.map(lambda side: play(side, script), (bare, real))
    told = [
        difference(step, mine, other)
        for step, mine, other in zip(script.steps, ours, theirs, strict=True)
        if mine != other or mine.code != step.code
    ]
    assert not told, f"{len(told)} of {len(script.steps)} steps differ\n" + "\n".join(told)


def test_a_step_that_is_not_compared_as_a_whole_says_why() -> None:
    for script in SCRIPTS:
        for step in script.steps:
            assert bool(step.because) == (step.view is not whole), f"{script.name}: {step.says}"


WATCHED = "kubectl-watched"
# What is watched, and how many lines that gives till the pod is being deleted.
WATCHES = (
    ("get pods -w", 5),
    ("get pods -w -o wide --output-watch-events -l app=web", 5),
    ("get pod web -w -o name", 4),
    ("get pods --watch-only -o jsonpath='{.metadata.labels}{\"\\n\"}'", 3),
    ("get pods -w -l seen=yes --no-headers", 3),
)


def watched(side: Side) -> list[list[str]]:
    """What each of them prints while a pod changes three times."""
    side.run("default", f"create namespace {WATCHED}")
    node = manifest("node", {"NAME": WATCHED})
    pod = manifest("pod", {"schedulerName: nobody": f"nodeName: {WATCHED}"})
    side.run(WATCHED, "create -f -", stdin=f"{node}---\n{pod}")
    with ExitStack() as stack:
        watches = [stack.enter_context(watching(side, WATCHED, command)) for command, _ in WATCHES]
        return _changed(side, watches)


def _changed(side: Side, watches: list[Callable[[int], list[str]]]) -> list[list[str]]:
    side.run(WATCHED, "label pod web seen=yes")
    status = '{"status":{"phase":"Running"}}'
    side.run(WATCHED, f"patch pod web --subresource=status --type=merge -p '{status}'")
    side.run(WATCHED, "delete pod web --wait=false")
    return [lines(after) for lines, (_, after) in zip(watches, WATCHES, strict=True)]


def test_a_watch_prints_the_same_on_both_servers(bare: Side, real: Side) -> None:
    with ThreadPoolExecutor(2) as both:
        ours, theirs = both.map(watched, (bare, real))
    assert ours == theirs


# Of the kinds that kube-apiserver has: what nobody needs to place pods.
NOT_SERVED = {
    "componentstatuses",
    "workloads",
}
# What kube-apiserver has not, or in another version.
OUR_OWN = {
    ("nodes", "metrics.k8s.io/v1beta1"),
    ("pods", "metrics.k8s.io/v1beta1"),
    ("devicepools", "situate.dev/v1alpha1"),
    ("nodejoins", "situate.dev/v1alpha1"),
    ("placementdecisions", "situate.dev/v1alpha1"),
    ("namespaceviews", "situate.dev/v1alpha1"),
    ("nodesnapshots", "situate.dev/v1alpha1"),
    ("nodeviews", "situate.dev/v1alpha1"),
    ("placementevents", "situate.dev/v1alpha1"),
    ("workloadviews", "situate.dev/v1alpha1"),
    ("podgroups", "scheduling.x-k8s.io/v1alpha1"),
    ("podgroups", "scheduling.k8s.io/v1beta1"),
}
PODGROUPS = ("podgroups", "scheduling.k8s.io/v1alpha2")


def resources(side: Side) -> dict[tuple[str, str], list[str]]:
    """By name and version, all that kubectl says of a resource: short names, kind, verbs, categories."""
    rows = [line.split() for line in side.run("default", "api-resources -o wide --no-headers").out.splitlines()]
    return {(row[0], next(word for word in row[1:] if word == "v1" or "/v" in word)): row for row in rows}


def test_what_is_served_is_served_as_kubernetes_does(bare: Side, real: Side) -> None:
    ours, theirs = resources(bare), resources(real)
    assert set(ours) - set(theirs) == OUR_OWN
    assert {name for name, version in set(theirs) - set(ours) - {PODGROUPS}} == NOT_SERVED
    assert {key: row for key, row in ours.items() if key not in OUR_OWN} == {
        key: theirs[key] for key in set(ours) - OUR_OWN
    }
    versions = set(bare.run("default", "api-versions").out.split())
    assert versions >= {version for _, version in ours} | {"scheduling.k8s.io/v1alpha2"}
