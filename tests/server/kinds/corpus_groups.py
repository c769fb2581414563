"""Bodies of the kinds beyond core/v1, good and bad: kube-apiserver's answers to them are in
data/groups.json.gz, by record_groups.py.

A case creates `body`; one with a `change` (a JSON merge patch) then updates what was created, or its status. What the
server answers to the last request is what counts.
"""

import gzip
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from situate.server.resources import BY_KIND

Json = dict[str, Any]
ANSWERS = Path(__file__).parent / "data" / "groups.json.gz"
RBAC = "rbac.authorization.k8s.io"
LONG = "a" * 64


@dataclass(frozen=True, slots=True)
class Case:
    title: str
    body: Json
    change: Json | None = field(default=None)
    subresource: str = ""


def merged(target: Any, patch: Any) -> Any:
    """JSON merge patch."""
    if not isinstance(patch, dict):
        return patch
    found = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            found.pop(key, None)
        else:
            found[key] = merged(found.get(key), value)
    return found


def path_of(body: Json) -> str:
    """Where objects of its kind are created."""
    resource = BY_KIND[body["apiVersion"], body["kind"]]
    root = f"/apis/{resource.api_version}"
    return f"{root}/namespaces/default/{resource.plural}" if resource.namespaced else f"{root}/{resource.plural}"


def answers() -> dict[str, Json]:
    """What kube-apiserver said, by the titles of the cases."""
    with gzip.open(ANSWERS, "rt") as file:
        found: dict[str, Json] = json.load(file)
    return found


def thing(api: str, kind: str, fields: Json, name: str = "a", **metadata: Any) -> Json:
    return {"apiVersion": api, "kind": kind, "metadata": {"name": name, **metadata}, **fields}


TEMPLATE: Json = {
    "metadata": {"labels": {"app": "a"}},
    "spec": {"containers": [{"name": "c", "image": "registry.test/a"}]},
}
ENDING: Json = merged(TEMPLATE, {"spec": {"restartPolicy": "Never"}})
SELECTS: Json = {"matchLabels": {"app": "a"}}


def deployment(patch: Json | None = None, **metadata: Any) -> Json:
    spec = merged({"selector": SELECTS, "template": TEMPLATE}, patch or {})
    return thing("apps/v1", "Deployment", {"spec": spec}, **metadata)


def replica_set(patch: Json | None = None, **metadata: Any) -> Json:
    return deployment(patch, **metadata) | {"kind": "ReplicaSet"}


def daemon_set(patch: Json | None = None, **metadata: Any) -> Json:
    return deployment(patch, **metadata) | {"kind": "DaemonSet"}


def stateful_set(patch: Json | None = None, **metadata: Any) -> Json:
    spec = merged({"serviceName": "a", "selector": SELECTS, "template": TEMPLATE}, patch or {})
    return thing("apps/v1", "StatefulSet", {"spec": spec}, **metadata)


def job(patch: Json | None = None, **metadata: Any) -> Json:
    return thing("batch/v1", "Job", {"spec": merged({"template": ENDING}, patch or {})}, **metadata)


def cron_job(patch: Json | None = None, **metadata: Any) -> Json:
    spec = merged({"schedule": "* * * * *", "jobTemplate": {"spec": {"template": ENDING}}}, patch or {})
    return thing("batch/v1", "CronJob", {"spec": spec}, **metadata)


def spec(**fields: Any) -> Json:
    return {"spec": fields}


def deployments() -> Iterator[Case]:
    yield Case("deployment: least", deployment())
    yield Case("deployment: status of a new one is dropped", deployment() | {"status": {"replicas": 3}})
    yield Case("deployment: recreate", deployment({"strategy": {"type": "Recreate"}}))
    yield Case("deployment: some of rolling update", deployment({"strategy": {"rollingUpdate": {"maxSurge": 1}}}))
    yield Case("deployment: replicas 0", deployment({"replicas": 0, "paused": True, "minReadySeconds": 5}))
    yield Case("deployment: no selector", deployment({"selector": None}))
    yield Case("deployment: empty selector", deployment({"selector": {"matchLabels": None}}))
    yield Case("deployment: selector of others", deployment({"selector": {"matchLabels": {"app": "b"}}}))
    yield Case("deployment: template without labels", deployment({"template": {"metadata": None}}))
    bad = {"matchExpressions": [{"key": "a b", "operator": "In"}, {"key": "x", "operator": "Near", "values": ["1"]}]}
    yield Case("deployment: bad selector", deployment({"selector": bad}))
    yield Case("deployment: bad label in selector", deployment({"selector": {"matchLabels": {"app": "b/c/d"}}}))
    yield Case(
        "deployment: negative numbers", deployment({"replicas": -1, "minReadySeconds": -1, "revisionHistoryLimit": -1})
    )
    yield Case("deployment: deadline", deployment({"progressDeadlineSeconds": 5, "minReadySeconds": 5}))
    yield Case("deployment: unknown strategy", deployment({"strategy": {"type": "Sideways"}}))
    both = {"type": "Recreate", "rollingUpdate": {"maxSurge": 1}}
    yield Case("deployment: recreate with rolling update", deployment({"strategy": both}))
    for title, rolling in {
        "both zero": {"maxSurge": 0, "maxUnavailable": 0},
        "both zero percent": {"maxSurge": "0%", "maxUnavailable": "0%"},
        "too much": {"maxUnavailable": "101%"},
        "surge over a hundred": {"maxSurge": "200%"},
        "not a percentage": {"maxUnavailable": "half", "maxSurge": "10"},
        "negative": {"maxUnavailable": -1},
    }.items():
        yield Case(f"deployment: rolling update, {title}", deployment({"strategy": {"rollingUpdate": rolling}}))
    yield Case("deployment: pods that end", deployment({"template": {"spec": {"restartPolicy": "Never"}}}))
    yield Case("deployment: pods with a deadline", deployment({"template": {"spec": {"activeDeadlineSeconds": 5}}}))
    yield Case("deployment: no containers", deployment({"template": {"spec": {"containers": []}}}))
    yield Case("deployment: no template", deployment({"template": None}))
    yield Case("deployment: bad name", deployment(name="A_b"))
    yield Case("deployment: update scales", deployment(), spec(replicas=4))
    yield Case("deployment: update of a label only", deployment(), {"metadata": {"labels": {"x": "y"}}})
    yield Case(
        "deployment: update of the template", deployment(), spec(template={"metadata": {"annotations": {"a": "b"}}})
    )
    yield Case("deployment: update keeps the status", deployment(), {"status": {"replicas": 9}})
    moved = {"selector": {"matchLabels": {"app": "b"}}, "template": {"metadata": {"labels": {"app": "b"}}}}
    yield Case("deployment: update of the selector", deployment(), {"spec": moved})
    yield Case("deployment: update with a mistake", deployment(), spec(replicas=-1))
    good = {"replicas": 2, "readyReplicas": 1, "availableReplicas": 1, "observedGeneration": 1}
    yield Case("deployment: status", deployment(), {"status": good, "spec": {"replicas": 7}}, "status")
    wrong = {"replicas": 1, "readyReplicas": 2, "availableReplicas": 3, "updatedReplicas": 4, "unavailableReplicas": -1}
    yield Case("deployment: bad status", deployment(), {"status": wrong}, "status")
    yield Case(
        "deployment: status observed",
        deployment(),
        {"status": {"observedGeneration": -1, "collisionCount": -1}},
        "status",
    )


def replica_sets() -> Iterator[Case]:
    yield Case("replicaset: least", replica_set())
    yield Case("replicaset: negative", replica_set({"replicas": -1, "minReadySeconds": -1}))
    yield Case("replicaset: no selector", replica_set({"selector": None}))
    yield Case("replicaset: empty selector", replica_set({"selector": {"matchLabels": None}}))
    yield Case("replicaset: selector of others", replica_set({"selector": {"matchLabels": {"app": "b"}}}))
    yield Case("replicaset: pods that end", replica_set({"template": {"spec": {"restartPolicy": "OnFailure"}}}))
    yield Case("replicaset: update scales", replica_set(), spec(replicas=2))
    yield Case(
        "replicaset: update of the selector",
        replica_set(),
        spec(selector={"matchLabels": {"b": "c"}}, template={"metadata": {"labels": {"b": "c"}}}),
    )
    yield Case("replicaset: status", replica_set(), {"status": {"replicas": 1, "readyReplicas": 1}}, "status")
    wrong = {"replicas": 1, "readyReplicas": 2, "availableReplicas": 3, "fullyLabeledReplicas": 4}
    yield Case("replicaset: bad status", replica_set(), {"status": wrong}, "status")


def stateful_sets() -> Iterator[Case]:
    claim = {
        "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }
    mounted = {
        "template": {
            "spec": {"containers": [{"name": "c", "image": "a", "volumeMounts": [{"name": "data", "mountPath": "/d"}]}]}
        }
    }
    yield Case("statefulset: least", stateful_set())
    yield Case("statefulset: no service", stateful_set({"serviceName": None}))
    yield Case("statefulset: bad service", stateful_set({"serviceName": "a.b"}))
    yield Case("statefulset: claims", stateful_set({"volumeClaimTemplates": [claim], **mounted}))
    yield Case("statefulset: a mount without a volume", stateful_set(mounted))
    yield Case("statefulset: on delete", stateful_set({"updateStrategy": {"type": "OnDelete"}}))
    yield Case("statefulset: rolling update alone", stateful_set({"updateStrategy": {"type": "RollingUpdate"}}))
    yield Case(
        "statefulset: rolling update with nothing",
        stateful_set({"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {}}}),
    )
    yield Case(
        "statefulset: on delete with partition",
        stateful_set({"updateStrategy": {"type": "OnDelete", "rollingUpdate": {"partition": 1}}}),
    )
    yield Case("statefulset: unknown strategy", stateful_set({"updateStrategy": {"type": "Never"}}))
    yield Case(
        "statefulset: negative partition", stateful_set({"updateStrategy": {"rollingUpdate": {"partition": -1}}})
    )
    yield Case(
        "statefulset: none unavailable",
        stateful_set({"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 0}}}),
    )
    yield Case(
        "statefulset: all unavailable",
        stateful_set({"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "120%"}}}),
    )
    yield Case("statefulset: unknown management", stateful_set({"podManagementPolicy": "Chaos"}))
    yield Case("statefulset: parallel", stateful_set({"podManagementPolicy": "Parallel", "ordinals": {"start": 3}}))
    yield Case(
        "statefulset: negative numbers",
        stateful_set({"replicas": -1, "minReadySeconds": -1, "ordinals": {"start": -1}}),
    )
    yield Case(
        "statefulset: retention", stateful_set({"persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Delete"}})
    )
    yield Case(
        "statefulset: bad retention", stateful_set({"persistentVolumeClaimRetentionPolicy": {"whenScaled": "Keep"}})
    )
    yield Case("statefulset: no selector", stateful_set({"selector": None}))
    yield Case("statefulset: empty selector", stateful_set({"selector": {"matchLabels": None}}))
    yield Case("statefulset: selector of others", stateful_set({"selector": {"matchLabels": {"app": "b"}}}))
    yield Case(
        "statefulset: pods that end",
        stateful_set({"template": {"spec": {"restartPolicy": "Never", "activeDeadlineSeconds": 3}}}),
    )
    yield Case(
        "statefulset: bad labels in the template", stateful_set({"template": {"metadata": {"labels": {"a b": "c"}}}})
    )
    yield Case("statefulset: dotted name", stateful_set(name="a.b"))
    yield Case("statefulset: update scales", stateful_set(), spec(replicas=3))
    yield Case("statefulset: update of the service", stateful_set(), spec(serviceName="b"))
    yield Case(
        "statefulset: update of the selector",
        stateful_set(),
        spec(selector={"matchLabels": {"b": "c"}}, template={"metadata": {"labels": {"b": "c"}}}),
    )
    yield Case("statefulset: update of the management", stateful_set(), spec(podManagementPolicy="Parallel"))
    yield Case(
        "statefulset: update of the template",
        stateful_set(),
        spec(template={"spec": {"nodeSelector": {"a": "b"}}}, minReadySeconds=3),
    )
    yield Case(
        "statefulset: status",
        stateful_set(),
        {"status": {"replicas": 1, "readyReplicas": 1, "availableReplicas": 0}},
        "status",
    )
    wrong = {"replicas": 1, "readyReplicas": 2, "currentReplicas": 3, "updatedReplicas": 4, "availableReplicas": 5}
    yield Case("statefulset: bad status", stateful_set(), {"status": wrong}, "status")


def daemon_sets() -> Iterator[Case]:
    yield Case("daemonset: least", daemon_set())
    yield Case("daemonset: on delete", daemon_set({"updateStrategy": {"type": "OnDelete"}}))
    yield Case(
        "daemonset: surge", daemon_set({"updateStrategy": {"rollingUpdate": {"maxSurge": "10%", "maxUnavailable": 0}}})
    )
    yield Case(
        "daemonset: both", daemon_set({"updateStrategy": {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 1}}})
    )
    yield Case(
        "daemonset: neither", daemon_set({"updateStrategy": {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 0}}})
    )
    yield Case("daemonset: too much", daemon_set({"updateStrategy": {"rollingUpdate": {"maxUnavailable": "110%"}}}))
    yield Case("daemonset: unknown strategy", daemon_set({"updateStrategy": {"type": "Never"}}))
    yield Case("daemonset: no selector", daemon_set({"selector": None}))
    yield Case("daemonset: empty selector", daemon_set({"selector": {"matchLabels": None}}))
    yield Case("daemonset: selector of others", daemon_set({"selector": {"matchLabels": {"app": "b"}}}))
    yield Case(
        "daemonset: pods that end",
        daemon_set({"template": {"spec": {"restartPolicy": "Never", "activeDeadlineSeconds": 3}}}),
    )
    yield Case("daemonset: negative", daemon_set({"minReadySeconds": -1, "revisionHistoryLimit": -1}))
    yield Case(
        "daemonset: update of the template", daemon_set(), spec(template={"metadata": {"annotations": {"a": "b"}}})
    )
    yield Case(
        "daemonset: update of the selector",
        daemon_set(),
        spec(selector={"matchLabels": {"b": "c"}}, template={"metadata": {"labels": {"b": "c"}}}),
    )
    yield Case("daemonset: status", daemon_set(), {"status": {"currentNumberScheduled": 2, "numberReady": 1}}, "status")
    yield Case(
        "daemonset: bad status",
        daemon_set(),
        {"status": {"currentNumberScheduled": -2, "numberReady": -1, "numberAvailable": -1}},
        "status",
    )


def revisions() -> Iterator[Case]:
    body = thing("apps/v1", "ControllerRevision", {"data": {"spec": {"a": 1}}, "revision": 1})
    yield Case("controllerrevision: good", body)
    yield Case("controllerrevision: no data", thing("apps/v1", "ControllerRevision", {"revision": 1}))
    yield Case("controllerrevision: negative", body | {"revision": -1})
    yield Case("controllerrevision: update of the number", body, {"revision": 2})
    yield Case("controllerrevision: update of the data", body, {"data": {"spec": {"a": 2}}})


def jobs() -> Iterator[Case]:
    yield Case("job: least", job())
    yield Case("job: parallelism only", job({"parallelism": 3}))
    yield Case("job: completions only", job({"completions": 3}))
    yield Case("job: labelled", job(labels={"x": "y"}))
    yield Case("job: template without labels", job({"template": {"metadata": None}}))
    yield Case("job: restarts always", job({"template": {"spec": {"restartPolicy": "Always"}}}))
    yield Case(
        "job: no restart policy", job({"template": TEMPLATE | {"spec": {**TEMPLATE["spec"], "restartPolicy": None}}})
    )
    yield Case("job: bad restart policy", job({"template": {"spec": {"restartPolicy": "Maybe"}}}))
    negative = {
        "parallelism": -1,
        "completions": -1,
        "activeDeadlineSeconds": -1,
        "backoffLimit": -1,
        "ttlSecondsAfterFinished": -1,
    }
    yield Case("job: negative numbers", job(negative))
    yield Case(
        "job: indexed",
        job({"completionMode": "Indexed", "completions": 2, "parallelism": 2, "backoffLimitPerIndex": 1}),
    )
    yield Case("job: indexed without completions", job({"completionMode": "Indexed", "parallelism": 2}))
    yield Case(
        "job: indexed, too parallel", job({"completionMode": "Indexed", "parallelism": 200_000, "completions": 5})
    )
    yield Case("job: indexed, long name", job({"completionMode": "Indexed", "completions": 11}, name="a" * 61))
    yield Case("job: unknown mode", job({"completionMode": "Random"}))
    yield Case("job: per index without indexes", job({"backoffLimitPerIndex": 1, "maxFailedIndexes": 1}))
    yield Case("job: max failed alone", job({"completionMode": "Indexed", "completions": 2, "maxFailedIndexes": 3}))
    yield Case(
        "job: many completions",
        job({"completionMode": "Indexed", "completions": 200_000, "parallelism": 20_000, "backoffLimitPerIndex": 1}),
    )
    yield Case("job: replacement", job({"podReplacementPolicy": "Failed"}))
    yield Case("job: bad replacement", job({"podReplacementPolicy": "Soon"}))
    yield Case("job: managed by another", job({"managedBy": "example.com/me"}))
    yield Case("job: managed badly", job({"managedBy": "me"}))
    rule = {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [1, 2]}}
    yield Case("job: failure policy", job({"podFailurePolicy": {"rules": [rule]}}))
    condition = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}
    yield Case("job: failure policy by condition", job({"podFailurePolicy": {"rules": [condition]}}))
    wrong = [
        {"action": "Cry", "onExitCodes": {"operator": "Near", "values": [], "containerName": "x"}},
        {"action": "FailIndex", "onExitCodes": {"operator": "In", "values": [2, 1, 1, 0]}},
        {"action": "Count"},
        {
            "action": "Ignore",
            "onPodConditions": [{"type": "a b", "status": "Odd"}],
            "onExitCodes": {"operator": "NotIn", "values": [0]},
        },
    ]
    yield Case(
        "job: bad failure policy",
        job({"podFailurePolicy": {"rules": wrong}, "podReplacementPolicy": "TerminatingOrFailed"}),
    )
    yield Case(
        "job: failure policy and restarts",
        job({"podFailurePolicy": {"rules": [rule]}, "template": {"spec": {"restartPolicy": "OnFailure"}}}),
    )
    indexed = {"completionMode": "Indexed", "completions": 5}
    yield Case(
        "job: success policy",
        job({**indexed, "successPolicy": {"rules": [{"succeededIndexes": "0-2,4", "succeededCount": 2}]}}),
    )
    yield Case("job: success policy not indexed", job({"successPolicy": {"rules": [{"succeededCount": 1}]}}))
    yield Case("job: success policy without rules", job({**indexed, "successPolicy": {"rules": []}}))
    bad = [
        {},
        {"succeededCount": 9},
        {"succeededIndexes": "0-1", "succeededCount": 3},
        {"succeededIndexes": "3-1"},
        {"succeededIndexes": "x"},
        {"succeededIndexes": "1-2-3"},
        {"succeededIndexes": "7"},
        {"succeededIndexes": "2,1"},
    ]
    yield Case("job: bad success policy", job({**indexed, "successPolicy": {"rules": bad}}))
    yield Case("job: manual selector", job({"manualSelector": True, "selector": SELECTS}))
    yield Case(
        "job: manual selector of others", job({"manualSelector": True, "selector": {"matchLabels": {"app": "b"}}})
    )
    yield Case("job: manual selector missing", job({"manualSelector": True}))
    yield Case("job: selector of its own", job({"selector": SELECTS}))
    yield Case(
        "job: label taken", job({"template": {"metadata": {"labels": {"controller-uid": "mine", "job-name": "other"}}}})
    )
    yield Case("job: dotted name", job(name="a.b"))
    yield Case("job: suspended", job({"suspend": True, "ttlSecondsAfterFinished": 5}))
    yield Case("job: update of parallelism", job(), spec(parallelism=4, suspend=True))
    yield Case("job: update of completions", job({"completions": 2}), spec(completions=3))
    yield Case(
        "job: update of completions with indexes",
        job({**indexed, "parallelism": 5}),
        spec(completions=7, parallelism=7),
    )
    yield Case("job: update of completions alone", job({**indexed, "parallelism": 5}), spec(completions=7))
    yield Case("job: update of the mode", job(), spec(completionMode="Indexed"))
    yield Case(
        "job: update of the selector",
        job({"manualSelector": True, "selector": SELECTS}),
        spec(selector={"matchLabels": {"app": "a", "b": "c"}}),
    )
    yield Case(
        "job: update of backoff", job(), spec(backoffLimit=2, activeDeadlineSeconds=4, ttlSecondsAfterFinished=1)
    )
    yield Case("job: update of who manages", job(), spec(managedBy="example.com/me"))
    yield Case(
        "job: update of a suspended one's node selector",
        job({"suspend": True}),
        spec(template={"spec": {"nodeSelector": {"a": "b"}}}),
    )
    yield Case(
        "job: status",
        job(),
        {"status": {"active": 1, "ready": 1, "startTime": "2026-01-01T00:00:00Z", "terminating": 0}},
        "status",
    )
    done = {
        "status": {
            "startTime": "2026-01-01T00:00:00Z",
            "completionTime": "2026-01-01T00:01:00Z",
            "succeeded": 1,
            "conditions": [{"type": "SuccessCriteriaMet", "status": "True"}, {"type": "Complete", "status": "True"}],
        }
    }
    yield Case("job: status complete", job(), done, "status")
    for title, status in {
        "negative": {"active": -1, "succeeded": -1, "failed": -1, "ready": -1, "terminating": -1},
        "more ready than active": {"active": 1, "ready": 2},
        "complete and failed": {
            "conditions": [{"type": "Complete", "status": "True"}, {"type": "Failed", "status": "True"}]
        },
        "complete without criteria": {
            "startTime": "2026-01-01T00:00:00Z",
            "completionTime": "2026-01-01T00:00:00Z",
            "conditions": [{"type": "Complete", "status": "True"}],
        },
        "failed without target": {
            "startTime": "2026-01-01T00:00:00Z",
            "conditions": [{"type": "Failed", "status": "True"}],
            "active": 1,
            "terminating": 1,
        },
        "completion without end": {"completionTime": "2026-01-01T00:00:00Z"},
        "ended before it began": {"startTime": "2026-01-02T00:00:00Z", "completionTime": "2026-01-01T00:00:00Z"},
        "indexes without need": {"completedIndexes": "0", "failedIndexes": "0"},
        "uncounted twice": {"uncountedTerminatedPods": {"succeeded": ["u", "u", ""], "failed": ["u"]}},
    }.items():
        yield Case(f"job: bad status, {title}", job(), {"status": status}, "status")
    perindex = job({**indexed, "backoffLimitPerIndex": 1})
    yield Case(
        "job: bad status, overlapping indexes",
        perindex,
        {"status": {"completedIndexes": "0-2", "failedIndexes": "2,3"}},
        "status",
    )
    yield Case(
        "job: bad status, bad indexes", perindex, {"status": {"completedIndexes": "9", "failedIndexes": "a"}}, "status"
    )


def cron_jobs() -> Iterator[Case]:
    yield Case("cronjob: least", cron_job())
    yield Case("cronjob: macro", cron_job({"schedule": "@hourly", "timeZone": "Europe/Paris"}))
    yield Case("cronjob: every", cron_job({"schedule": "@every 90m"}))
    yield Case("cronjob: no schedule", cron_job({"schedule": ""}))
    for number, schedule in enumerate(
        (
            "* * * *",
            "61 * * * *",
            "* * * * * *",
            "@often",
            "a * * * *",
            "*/0 * * * *",
            "5-1 * * * *",
            "* * 0 * *",
            "TZ=UTC * * * * *",
            "@every x",
        )
    ):
        yield Case(f"cronjob: bad schedule {number}", cron_job({"schedule": schedule}))
    for number, zone in enumerate(("", "Nowhere/Land", "Local", "../etc", "a b", "UTC")):
        yield Case(f"cronjob: time zone {number}", cron_job({"timeZone": zone}))
    yield Case("cronjob: unknown concurrency", cron_job({"concurrencyPolicy": "Maybe"}))
    yield Case(
        "cronjob: negative",
        cron_job({"startingDeadlineSeconds": -1, "successfulJobsHistoryLimit": -1, "failedJobsHistoryLimit": -1}),
    )
    yield Case("cronjob: selector", cron_job({"jobTemplate": {"spec": {"selector": SELECTS, "manualSelector": True}}}))
    yield Case(
        "cronjob: restarts always",
        cron_job({"jobTemplate": {"spec": {"template": {"spec": {"restartPolicy": "Always"}}}}}),
    )
    yield Case("cronjob: bad job", cron_job({"jobTemplate": {"spec": {"completions": -1, "completionMode": "Odd"}}}))
    yield Case("cronjob: long name", cron_job(name="a" * 53))
    yield Case("cronjob: update", cron_job(), spec(suspend=True, schedule="@daily"))
    yield Case("cronjob: update with a mistake", cron_job(), spec(schedule="x"))
    yield Case(
        "cronjob: status",
        cron_job(),
        {"status": {"lastScheduleTime": "2026-01-01T00:00:00Z", "active": [{"kind": "Job", "name": "j"}]}},
        "status",
    )


def budgets() -> Iterator[Case]:
    def budget(**fields: Any) -> Json:
        return thing("policy/v1", "PodDisruptionBudget", {"spec": {"selector": SELECTS, **fields}})

    yield Case("pdb: min", budget(minAvailable=1))
    yield Case("pdb: max", budget(maxUnavailable="30%"))
    yield Case("pdb: neither", budget())
    yield Case("pdb: both", budget(minAvailable=1, maxUnavailable=1))
    yield Case("pdb: negative", budget(minAvailable=-1))
    yield Case("pdb: over a hundred", budget(minAvailable="101%"))
    yield Case("pdb: not a percentage", budget(maxUnavailable="most"))
    yield Case("pdb: policy", budget(minAvailable=1, unhealthyPodEvictionPolicy="AlwaysAllow"))
    yield Case("pdb: bad policy", budget(minAvailable=1, unhealthyPodEvictionPolicy="Sometimes"))
    yield Case("pdb: bad selector", budget(selector={"matchExpressions": [{"key": "", "operator": "In"}]}))
    yield Case("pdb: update", budget(minAvailable=1), spec(minAvailable=2, selector={"matchLabels": {"app": "b"}}))
    yield Case(
        "pdb: status",
        budget(),
        {"status": {"disruptionsAllowed": 1, "currentHealthy": 1, "desiredHealthy": 0, "expectedPods": 1}},
        "status",
    )
    yield Case(
        "pdb: bad status",
        budget(),
        {
            "status": {
                "disruptionsAllowed": -1,
                "currentHealthy": -1,
                "desiredHealthy": 0,
                "expectedPods": 1,
                "conditions": [{"type": "", "status": "Odd", "reason": "", "message": ""}],
            }
        },
        "status",
    )


def priorities() -> Iterator[Case]:
    def priority(name: str = "p", **fields: Any) -> Json:
        return thing("scheduling.k8s.io/v1", "PriorityClass", {"value": 5, **fields}, name)

    yield Case("priority: least", priority())
    yield Case("priority: never", priority(preemptionPolicy="Never", globalDefault=False, description="d"))
    yield Case("priority: bad policy", priority(preemptionPolicy="Sometimes"))
    yield Case("priority: too high", priority(value=1_000_000_001))
    yield Case("priority: of the system", priority("system-mine"))
    yield Case("priority: update of the value", priority(), {"value": 6})
    yield Case("priority: update of the policy", priority(), {"preemptionPolicy": "Never"})
    yield Case("priority: update of the description", priority(), {"description": "x"})


def groups() -> Iterator[Case]:
    def group(**fields: Any) -> Json:
        return thing("scheduling.k8s.io/v1alpha2", "PodGroup", {"spec": fields})

    gang = {"gang": {"minCount": 2}}
    yield Case("podgroup: gang", group(schedulingPolicy=gang))
    yield Case("podgroup: basic", group(schedulingPolicy={"basic": {}}))
    yield Case("podgroup: neither", group(schedulingPolicy={}))
    yield Case("podgroup: both", group(schedulingPolicy={**gang, "basic": {}}))
    yield Case("podgroup: no policy", group())
    yield Case("podgroup: none at least", group(schedulingPolicy={"gang": {"minCount": 0}}))
    yield Case("podgroup: negative", group(schedulingPolicy={"gang": {"minCount": -1}}))
    yield Case(
        "podgroup: update of the policy", group(schedulingPolicy=gang), spec(schedulingPolicy={"gang": {"minCount": 3}})
    )
    yield Case("podgroup: update of a label", group(schedulingPolicy=gang), {"metadata": {"labels": {"a": "b"}}})
    condition = {
        "type": "PodGroupScheduled",
        "status": "True",
        "reason": "Scheduled",
        "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    yield Case("podgroup: status", group(schedulingPolicy=gang), {"status": {"conditions": [condition]}}, "status")
    yield Case(
        "podgroup: bad status",
        group(schedulingPolicy=gang),
        {"status": {"conditions": [{"type": "a b", "status": "Odd", "reason": "", "message": ""}]}},
        "status",
    )


def leases() -> Iterator[Case]:
    def lease(**fields: Any) -> Json:
        return thing("coordination.k8s.io/v1", "Lease", {"spec": fields})

    yield Case("lease: empty", lease())
    yield Case(
        "lease: held",
        lease(
            holderIdentity="me", leaseDurationSeconds=15, renewTime="2026-01-01T00:00:00.000000Z", leaseTransitions=0
        ),
    )
    yield Case("lease: no duration", lease(leaseDurationSeconds=0))
    yield Case("lease: negative", lease(leaseDurationSeconds=-1, leaseTransitions=-1))
    yield Case("lease: preferred", lease(preferredHolder="me"))
    yield Case("lease: strategy", lease(strategy="Newest"))
    yield Case("lease: update", lease(), spec(holderIdentity="you", leaseTransitions=1))
    yield Case("lease: bad update", lease(), spec(leaseDurationSeconds=-1))


def storage() -> Iterator[Case]:
    api = "storage.k8s.io/v1"

    def cls(name: str = "fast", **fields: Any) -> Json:
        return thing(api, "StorageClass", {"provisioner": "example.com/p", **fields}, name)

    yield Case("storageclass: least", cls())
    yield Case(
        "storageclass: full",
        cls(
            reclaimPolicy="Retain", volumeBindingMode="WaitForFirstConsumer", parameters={"a": "b"}, mountOptions=["x"]
        ),
    )
    yield Case("storageclass: no provisioner", cls(provisioner=""))
    yield Case("storageclass: bad provisioner", cls(provisioner="a b/c"))
    yield Case("storageclass: bad reclaim", cls(reclaimPolicy="Recycle"))
    yield Case("storageclass: bad binding", cls(volumeBindingMode="Later"))
    yield Case("storageclass: nameless parameter", cls(parameters={"": "b"}))
    topology = [{"matchLabelExpressions": [{"key": "zone", "values": ["a", "a"]}, {"key": "b c", "values": []}]}]
    yield Case(
        "storageclass: topology", cls(allowedTopologies=[{"matchLabelExpressions": [{"key": "zone", "values": ["a"]}]}])
    )
    yield Case("storageclass: bad topology", cls(allowedTopologies=topology))
    yield Case("storageclass: update of parameters", cls(), {"parameters": {"a": "b"}})
    yield Case("storageclass: update of the provisioner", cls(), {"provisioner": "example.com/q"})
    yield Case(
        "storageclass: update of policies",
        cls(),
        {"reclaimPolicy": "Retain", "volumeBindingMode": "WaitForFirstConsumer"},
    )
    yield Case("storageclass: update of expansion", cls(), {"allowVolumeExpansion": True})

    def attributes(**fields: Any) -> Json:
        return thing(
            api, "VolumeAttributesClass", {"driverName": "example.com/d", "parameters": {"iops": "1"}, **fields}
        )

    yield Case("volumeattributesclass: least", attributes())
    yield Case("volumeattributesclass: no driver", attributes(driverName=""))
    yield Case("volumeattributesclass: bad driver", attributes(driverName="a b/c"))
    yield Case("volumeattributesclass: no parameters", attributes(parameters=None))
    yield Case("volumeattributesclass: nameless parameter", attributes(parameters={"": "b"}))
    yield Case("volumeattributesclass: update of both", attributes(), {"driverName": "e", "parameters": {"iops": "2"}})
    yield Case("volumeattributesclass: update of neither", attributes(), {"metadata": {"labels": {"a": "b"}}})

    def driver(**fields: Any) -> Json:
        return thing(api, "CSIDriver", {"spec": fields}, "d.example.com")

    yield Case("csidriver: least", driver())
    yield Case("csidriver: bad modes", driver(volumeLifecycleModes=["Odd"], fsGroupPolicy="Some"))
    yield Case(
        "csidriver: tokens",
        driver(
            tokenRequests=[
                {"audience": "a", "expirationSeconds": 5},
                {"audience": "a"},
                {"audience": "b", "expirationSeconds": 600},
            ]
        ),
    )
    yield Case("csidriver: update of attaching", driver(), spec(attachRequired=False))
    yield Case("csidriver: update of modes", driver(), spec(volumeLifecycleModes=["Ephemeral"]))
    yield Case("csidriver: update of capacity", driver(), spec(storageCapacity=True))

    def node(*drivers: Json) -> Json:
        return thing(api, "CSINode", {"spec": {"drivers": list(drivers)}}, "n")

    good = {"name": "d.example.com", "nodeID": "n", "topologyKeys": ["zone"], "allocatable": {"count": 4}}
    yield Case("csinode: good", node(good))
    yield Case("csinode: none", node())
    yield Case("csinode: twice", node(good, good))
    yield Case(
        "csinode: bad",
        node({"name": "d_e", "nodeID": "", "topologyKeys": ["a b", "", "zone", "zone"], "allocatable": {"count": -1}}),
    )
    yield Case("csinode: update of the id", node(good), {"spec": {"drivers": [{**good, "nodeID": "m"}]}})
    yield Case(
        "csinode: update of the count", node(good), {"spec": {"drivers": [{**good, "allocatable": {"count": 5}}]}}
    )

    def capacity(**fields: Any) -> Json:
        return thing(api, "CSIStorageCapacity", {"storageClassName": "fast", **fields})

    yield Case("capacity: good", capacity(capacity="1Gi", nodeTopology=SELECTS))
    yield Case("capacity: no class", capacity(storageClassName=""))
    yield Case("capacity: negative", capacity(capacity="-1"))
    yield Case("capacity: update of the class", capacity(), {"storageClassName": "slow", "capacity": "2Gi"})
    yield Case(
        "capacity: update of the topology",
        capacity(nodeTopology=SELECTS),
        {"nodeTopology": {"matchLabels": {"app": "b"}}},
    )

    def attachment(**fields: Any) -> Json:
        return thing(
            api,
            "VolumeAttachment",
            {"spec": {"attacher": "d.example.com", "nodeName": "n", "source": {"persistentVolumeName": "v"}, **fields}},
        )

    yield Case("attachment: good", attachment())
    yield Case("attachment: no source", attachment(source={}))
    yield Case("attachment: no attacher", attachment(attacher="", nodeName=""))
    yield Case("attachment: update", attachment(), spec(nodeName="m"))
    yield Case("attachment: status", attachment(), {"status": {"attached": True}}, "status")


def access() -> Iterator[Case]:
    api = f"{RBAC}/v1"
    rule = {"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}
    yield Case("role: good", thing(api, "Role", {"rules": [rule]}))
    yield Case("role: no rules", thing(api, "Role", {"rules": []}))
    yield Case(
        "role: bad rules",
        thing(
            api,
            "Role",
            {
                "rules": [
                    {"verbs": []},
                    {"verbs": ["get"], "nonResourceURLs": ["/x"]},
                    {"verbs": ["get"], "apiGroups": [""], "nonResourceURLs": ["/x"]},
                ]
            },
        ),
    )
    yield Case("role: odd name", thing(api, "Role", {"rules": [rule]}, "a:B_c"))
    yield Case("role: update with a mistake", thing(api, "Role", {"rules": [rule]}), {"rules": [{"verbs": ["get"]}]})
    yield Case(
        "clusterrole: good", thing(api, "ClusterRole", {"rules": [rule, {"verbs": ["get"], "nonResourceURLs": ["/x"]}]})
    )
    yield Case("clusterrole: both", thing(api, "ClusterRole", {"rules": [{**rule, "nonResourceURLs": ["/x"]}]}))
    yield Case("clusterrole: aggregates nothing", thing(api, "ClusterRole", {"aggregationRule": {}}))
    yield Case(
        "clusterrole: aggregates", thing(api, "ClusterRole", {"aggregationRule": {"clusterRoleSelectors": [SELECTS]}})
    )
    yield Case(
        "clusterrole: aggregates badly",
        thing(api, "ClusterRole", {"aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"a b": "c"}}]}}),
    )
    ref = {"apiGroup": RBAC, "kind": "ClusterRole", "name": "view"}
    subjects = [
        {"kind": "User", "name": "u"},
        {"kind": "Group", "name": "g"},
        {"kind": "ServiceAccount", "name": "s", "namespace": "default"},
    ]
    for kind in ("RoleBinding", "ClusterRoleBinding"):
        title = kind.lower()
        yield Case(f"{title}: good", thing(api, kind, {"roleRef": ref, "subjects": subjects}))
        yield Case(f"{title}: group filled in", thing(api, kind, {"roleRef": {"kind": "ClusterRole", "name": "view"}}))
        yield Case(f"{title}: no reference", thing(api, kind, {}))
        yield Case(
            f"{title}: bad reference", thing(api, kind, {"roleRef": {"apiGroup": "x", "kind": "Rule", "name": "a/b"}})
        )
        wrong = [
            {"kind": "User", "name": ""},
            {"kind": "Robot", "name": "r"},
            {"kind": "ServiceAccount", "name": "A b"},
            {"kind": "Group", "name": "g", "apiGroup": "x"},
            {"kind": "ServiceAccount", "name": "s", "namespace": "d", "apiGroup": "x"},
        ]
        yield Case(f"{title}: bad subjects", thing(api, kind, {"roleRef": ref, "subjects": wrong}))
        yield Case(
            f"{title}: update of the reference", thing(api, kind, {"roleRef": ref}), {"roleRef": {"name": "edit"}}
        )
        yield Case(f"{title}: update of the subjects", thing(api, kind, {"roleRef": ref}), {"subjects": subjects})


def api_services() -> Iterator[Case]:
    def service(name: str = "v1.example.com", **fields: Any) -> Json:
        known = {"group": "example.com", "version": "v1", "groupPriorityMinimum": 100, "versionPriority": 10}
        return thing("apiregistration.k8s.io/v1", "APIService", {"spec": {**known, **fields}}, name)

    there = {"namespace": "default", "name": "s"}
    yield Case("apiservice: another name", service("v2.example.com"))
    yield Case("apiservice: a name with a slash", service("a%b"))
    yield Case("apiservice: no group", service("v2.", group="", version="v2"))
    yield Case("apiservice: bad group", service("v1.A_b", group="A_b"))
    yield Case("apiservice: bad version", service("1.example.com", version="1"))
    yield Case("apiservice: no priorities", service(groupPriorityMinimum=0, versionPriority=0))
    yield Case("apiservice: high priorities", service(groupPriorityMinimum=20_001, versionPriority=1_001))
    yield Case("apiservice: local with a certificate", service(caBundle="YWJj", insecureSkipTLSVerify=True))
    yield Case("apiservice: no service named", service(service={"port": 0}))
    yield Case("apiservice: insecure", service(service=there, caBundle="YWJj", insecureSkipTLSVerify=True))
    yield Case("apiservice: bad update", service(), spec(versionPriority=0))


def devices() -> Iterator[Case]:
    api = "resource.k8s.io/v1"

    def claim(*requests: Json, **more: Any) -> Json:
        return thing(api, "ResourceClaim", {"spec": {"devices": {"requests": list(requests), **more}}})

    exact = {"name": "r", "exactly": {"deviceClassName": "gpus"}}
    yield Case("claim: exact", claim(exact))
    yield Case("claim: all", claim({"name": "r", "exactly": {"deviceClassName": "gpus", "allocationMode": "All"}}))
    yield Case(
        "claim: first available", claim({"name": "r", "firstAvailable": [{"name": "s", "deviceClassName": "gpus"}]})
    )
    yield Case("claim: neither", claim({"name": "r"}))
    yield Case("claim: bad names", claim({"name": "R", "exactly": {"deviceClassName": "G"}}))
    yield Case("claim: no class", claim({"name": "r", "exactly": {}}))
    yield Case("claim: bad mode", claim({"name": "r", "exactly": {"deviceClassName": "g", "allocationMode": "Odd"}}))
    yield Case("claim: negative count", claim({"name": "r", "exactly": {"deviceClassName": "g", "count": -1}}))
    yield Case(
        "claim: count of all",
        claim({"name": "r", "exactly": {"deviceClassName": "g", "allocationMode": "All", "count": 2}}),
    )
    yield Case("claim: same name twice", claim(exact, exact))
    yield Case(
        "claim: constraint on nothing",
        claim(exact, constraints=[{"requests": ["x"], "matchAttribute": "example.com/a"}]),
    )
    yield Case(
        "claim: update",
        claim(exact),
        spec(devices={"requests": [{"name": "q", "exactly": {"deviceClassName": "gpus"}}]}),
    )
    yield Case("template: good", thing(api, "ResourceClaimTemplate", {"spec": {"spec": claim(exact)["spec"]}}))
    yield Case("template: bad", thing(api, "ResourceClaimTemplate", {"spec": {"spec": claim({"name": "r"})["spec"]}}))
    yield Case(
        "template: update",
        thing(api, "ResourceClaimTemplate", {"spec": {"spec": claim(exact)["spec"]}}),
        spec(
            spec={
                "devices": {
                    "requests": [{"name": "q", "exactly": {"deviceClassName": "gpus", "allocationMode": "All"}}]
                }
            }
        ),
    )
    yield Case("deviceclass: empty", thing(api, "DeviceClass", {"spec": {}}))
    yield Case("deviceclass: bad selector", thing(api, "DeviceClass", {"spec": {"selectors": [{}]}}))
    pool = {"name": "p", "generation": 1, "resourceSliceCount": 1}

    def slices(**fields: Any) -> Json:
        return thing(
            api, "ResourceSlice", {"spec": {"driver": "d.example.com", "pool": pool, "nodeName": "n", **fields}}
        )

    yield Case(
        "slice: good",
        slices(
            devices=[{"name": "d0", "capacity": {"memory": {"value": "1Gi"}}, "attributes": {"model": {"string": "x"}}}]
        ),
    )
    yield Case("slice: no node", slices(nodeName=None))
    yield Case("slice: node and all", slices(allNodes=True))
    yield Case("slice: bad pool", slices(pool={"name": "", "generation": -1, "resourceSliceCount": 0}))
    yield Case("slice: bad driver", slices(driver=""))
    yield Case("slice: bad device", slices(devices=[{"name": "D"}, {"name": "d"}, {"name": "d"}]))
    yield Case(
        "slice: bad attribute", slices(devices=[{"name": "d", "attributes": {"a": {}, "b": {"int": 1, "string": "x"}}}])
    )
    yield Case("slice: update of the node", slices(), spec(nodeName="m"))
    yield from _device_slices(slices)
    yield from _device_claims(claim)
    yield from _allocations(claim(exact))


def _device_slices(slices: Callable[..., Json]) -> Iterator[Case]:
    counters = {"memory": {"value": "1Gi"}}
    uses = [{"counterSet": "s", "counters": counters}]
    field = {"key": "metadata.name", "operator": "In", "values": ["n"]}
    term = {"matchFields": [field]}
    tainted: Json = {"key": "k", "value": "v", "effect": "NoSchedule", "timeAdded": "2026-01-01T00:00:00Z"}
    bad_taints = [{"key": "", "effect": ""}, {"key": "a b", "value": "c d", "effect": "Odd"}]
    both = {"bindingConditions": ["a"], "bindingFailureConditions": ["b"]}
    each: Json = {"nodeName": None, "perDeviceNodeSelection": True}
    shared = {"name": "d", "allowMultipleAllocations": True}
    policy = {"memory": {"value": "1Gi", "requestPolicy": {"default": "1Mi"}}}
    specs: dict[str, Json] = {
        "counters": {"sharedCounters": [{"name": "s", "counters": counters}]},
        "bad counters": {"sharedCounters": [{"name": ""}, {"name": "S", "counters": {"A": {"value": "1"}}}]},
        "nine counter sets": {"sharedCounters": [{"name": f"s{at}", "counters": counters} for at in range(9)]},
        "the same counters twice": {"sharedCounters": [{"name": "s", "counters": counters}] * 2},
        "devices and counters": {
            "devices": [{"name": "d"}],
            "sharedCounters": [{"name": "s", "counters": counters}],
        },
        "consumption": {"devices": [{"name": "d", "consumesCounters": uses}]},
        "bad consumption": {"devices": [{"name": "d", "consumesCounters": [{"counterSet": ""}]}]},
        "three consumptions": {
            "devices": [{"name": "d", "consumesCounters": [{**uses[0], "counterSet": f"s{at}"} for at in range(3)]}]
        },
        "taints": {"devices": [{"name": "d", "taints": [tainted]}]},
        "bad taints": {"devices": [{"name": "d", "taints": bad_taints}]},
        "17 taints": {"devices": [{"name": "d", "taints": [{**tainted, "key": f"k{at}"} for at in range(17)]}]},
        "65 devices with taints": {"devices": [{"name": f"d{at}", "taints": [tainted]} for at in range(65)]},
        "129 devices": {"devices": [{"name": f"d{at}"} for at in range(129)]},
        "binding conditions": {"devices": [{"name": "d", "bindsToNode": True, **both}]},
        "one kind of binding conditions": {
            "devices": [{"name": "d", "bindingConditions": ["a"]}, {"name": "e", "bindingFailureConditions": ["b"]}]
        },
        "the same binding conditions": {
            "devices": [{"name": "d", "bindingConditions": ["a", "a"], "bindingFailureConditions": ["a"]}]
        },
        "a policy": {"devices": [{**shared, "capacity": policy}]},
        "a policy of a device of one claim": {"devices": [{"name": "d", "capacity": policy}]},
        **{
            f"a policy, {title}": {
                "devices": [{**shared, "capacity": {"memory": {"value": "10Gi", "requestPolicy": one}}}]
            }
            for title, one in {
                "values": {"default": "1Gi", "validValues": ["1Gi", "2Gi"]},
                "values without a default": {"validValues": ["1Gi"]},
                "bad values": {"default": "3Gi", "validValues": ["2Gi", "1Gi", "1Gi", "11Gi"]},
                "eleven values": {"default": "1Gi", "validValues": [f"{at}Mi" for at in range(1015, 1025)] + ["2Gi"]},
                "a range": {"default": "1Gi", "validRange": {"min": "1Gi", "max": "5Gi", "step": "2Gi"}},
                "a range without a default": {"validRange": {"min": "1Gi"}},
                "a range without a minimum": {"default": "1Gi", "validRange": {"max": "1Gi"}},
                "a range below the default": {"default": "3Gi", "validRange": {"min": "1Gi", "max": "2Gi"}},
                "a range above the default": {"default": "1Gi", "validRange": {"min": "3Gi", "max": "2Gi"}},
                "a range above the capacity": {"default": "11Gi", "validRange": {"min": "11Gi", "max": "12Gi"}},
                "steps": {"default": "2Gi", "validRange": {"min": "1Gi", "max": "4Gi", "step": "2Gi"}},
                "values and a range": {"default": "1Gi", "validValues": ["1Gi"], "validRange": {"min": "1Gi"}},
            }.items()
        },
        "a place of a device": {"devices": [{"name": "d", "nodeName": "n"}]},
        "no place of a device": {**each, "devices": [{"name": "d"}]},
        "two places of a device": {**each, "devices": [{"name": "d", "nodeName": "n", "allNodes": True}]},
        "places of devices": {**each, "devices": [{"name": "d", "allNodes": True}, {"name": "e", "nodeName": "n"}]},
        "bad places of devices": {**each, "devices": [{"name": "d", "nodeName": ""}, {"name": "e", "allNodes": False}]},
        "two terms": {"nodeName": None, "nodeSelector": {"nodeSelectorTerms": [term, term]}},
    }
    for title, spec_of in specs.items():
        yield Case(f"slice: {title}", slices(**spec_of))


def _device_claims(claim: Callable[..., Json]) -> Iterator[Case]:
    def asks(**fields: Any) -> Json:
        return {"name": "r", "exactly": {"deviceClassName": "g", **fields}}

    def selects(expression: str) -> Json:
        return asks(selectors=[{"cel": {"expression": expression}}])

    bad = [{"key": "a b", "operator": "Odd", "effect": "Odd"}, {"key": "k"}, {"operator": "Exists", "value": "v"}]
    yield Case("claim: tolerations", claim(asks(tolerations=[{"key": "k", "operator": "Exists"}])))
    yield Case("claim: bad tolerations", claim(asks(tolerations=bad)))
    yield Case("claim: no attribute", claim(asks(), constraints=[{"requests": ["r"]}]))
    yield Case("claim: expression", claim(selects('device.driver == "a" && device.attributes["a"].b > 1')))
    for title, text in {
        "unknown name": "devise.driver",
        "no bool": "device.driver",
        "unknown field": "device.name == 'a'",
    }.items():
        yield Case(f"claim: expression, {title}", claim(selects(text)))
    api = "resource.k8s.io/v1"
    for name in ("example.com/gpu", "gpu", "kubernetes.io/gpu", ""):
        extended = thing(api, "DeviceClass", {"spec": {"extendedResourceName": name}})
        yield Case(f"deviceclass: extended resource {name!r}", extended)
    expression = {"spec": {"selectors": [{"cel": {"expression": "1"}}]}}
    yield Case("deviceclass: bad expression", thing(api, "DeviceClass", expression))


def _allocations(claim: Json) -> Iterator[Case]:
    good = {"request": "r", "driver": "d.example.com", "pool": "p", "device": "d"}
    share = "0b5f2e8a-7f0c-4c6e-9d3b-0123456789ab"
    opaque = {"driver": "d.example.com", "parameters": {"a": 1}}
    who = {"resource": "pods", "name": "p", "uid": "u"}
    status_of: dict[str, Json] = {
        title: {"allocation": {"devices": {"results": results}}}
        for title, results in {
            "a device": [good],
            "a share": [{**good, "shareID": share, "consumedCapacity": {"memory": "1Gi"}}],
            "no request": [{**good, "request": "q"}],
            "no subrequest": [{**good, "request": "r/s"}],
            "bad names": [{**good, "driver": "D_", "pool": "P", "device": "D"}],
            "no names": [{"request": "", "driver": "", "pool": "", "device": ""}],
            "no share": [{**good, "shareID": "x"}],
            "a share in capitals": [{**good, "shareID": share.upper()}],
            "33 devices": [{**good, "device": f"d{at}"} for at in range(33)],
            "binding conditions": [{**good, "bindingConditions": ["a"], "bindingFailureConditions": ["b"]}],
            "one kind of binding conditions": [{**good, "bindingConditions": ["a"]}],
        }.items()
    }
    for title, config in {
        "configuration": [{"source": "FromClass", "requests": ["r"], "opaque": opaque}],
        "bad configuration": [{"source": "", "opaque": opaque}, {"source": "Odd", "requests": ["q"]}],
    }.items():
        status_of[title] = {"allocation": {"devices": {"results": [good], "config": config}}}
    status_of["a reservation"] = {**status_of["a device"], "reservedFor": [who]}
    status_of["a reservation of nothing"] = {"reservedFor": [who]}
    for title, status in status_of.items():
        yield Case(f"claim: allocation of {title}", claim, {"status": status}, "status")


def others() -> Iterator[Case]:
    def slices(**fields: Any) -> Json:
        return thing(
            "discovery.k8s.io/v1",
            "EndpointSlice",
            {"addressType": "IPv4", "endpoints": [{"addresses": ["10.1.2.3"]}], **fields},
        )

    yield Case("endpointslice: good", slices(ports=[{"port": 80}]))
    yield Case("endpointslice: no type", slices(addressType=""))
    yield Case("endpointslice: bad type", slices(addressType="Odd"))
    yield Case("endpointslice: no addresses", slices(endpoints=[{"addresses": []}]))
    yield Case("endpointslice: bad address", slices(endpoints=[{"addresses": ["x", "127.0.0.1", "fd00::1"]}]))
    yield Case(
        "endpointslice: bad ports", slices(ports=[{"name": "A_", "protocol": "ICMP"}, {"name": "a"}, {"name": "a"}])
    )
    yield Case(
        "endpointslice: bad hostname",
        slices(endpoints=[{"addresses": ["10.1.2.3"], "hostname": "A.b", "nodeName": "N"}]),
    )
    yield Case("endpointslice: names", slices(addressType="FQDN", endpoints=[{"addresses": ["example.com", "x"]}]))
    yield Case("endpointslice: update of the type", slices(), {"addressType": "IPv6", "endpoints": []})
    yield Case("endpointslice: update", slices(), {"endpoints": [{"addresses": ["10.1.2.4"]}]})

    def runtime(**fields: Any) -> Json:
        return thing("node.k8s.io/v1", "RuntimeClass", {"handler": "h", **fields})

    yield Case("runtimeclass: good", runtime())
    yield Case("runtimeclass: no handler", runtime(handler=""))
    yield Case("runtimeclass: bad handler", runtime(handler="A.b"))
    yield Case(
        "runtimeclass: overhead",
        runtime(overhead={"podFixed": {"cpu": "1", "memory": "-1"}}, scheduling={"nodeSelector": {"a b": "c"}}),
    )
    yield Case("runtimeclass: update of the handler", runtime(), {"handler": "i"})

    def event(**fields: Any) -> Json:
        told = {
            "regarding": {"kind": "Pod", "name": "p", "namespace": "default"},
            "reason": "R",
            "type": "Normal",
            "action": "A",
            "note": "n",
        }
        told |= {
            "eventTime": "2026-01-01T00:00:00.000000Z",
            "reportingController": "example.com/c",
            "reportingInstance": "c-1",
        }
        return thing("events.k8s.io/v1", "Event", merged(told, fields))

    yield Case("event: good", event())
    yield Case("event: no time", event(eventTime=None))
    yield Case("event: no controller", event(reportingController=None, reportingInstance=None))
    yield Case("event: no words", event(reason=None, action=None, type=None))
    yield Case("event: bad type", event(type="Odd"))
    yield Case("event: long note", event(note="n" * 1025))
    yield Case("event: elsewhere", event(regarding={"namespace": "other"}))
    yield Case("event: series", event(series={"count": 1}))
    yield Case("event: update of the note", event(), {"note": "other"})
    yield Case(
        "event: update of the series",
        event(),
        {"series": {"count": 3, "lastObservedTime": "2026-01-01T00:00:01.000000Z"}},
    )


def names() -> Iterator[Case]:
    """The rule of names of each kind, and prefixes for names."""
    role = {"rules": [{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}]}
    bodies = {
        "apps/v1 ReplicaSet": replica_set(),
        "apps/v1 StatefulSet": stateful_set(),
        "apps/v1 DaemonSet": daemon_set(),
        "apps/v1 ControllerRevision": {"data": {"a": 1}, "revision": 1},
        "batch/v1 Job": job(),
        "batch/v1 CronJob": cron_job(),
        "policy/v1 PodDisruptionBudget": {"spec": {}},
        "scheduling.k8s.io/v1 PriorityClass": {"value": 1},
        "scheduling.k8s.io/v1alpha2 PodGroup": {"spec": {"schedulingPolicy": {"basic": {}}}},
        "coordination.k8s.io/v1 Lease": {},
        "storage.k8s.io/v1 StorageClass": {"provisioner": "example.com/p"},
        "storage.k8s.io/v1 CSIDriver": {"spec": {}},
        "storage.k8s.io/v1 CSINode": {"spec": {"drivers": []}},
        "storage.k8s.io/v1 CSIStorageCapacity": {"storageClassName": "fast"},
        "storage.k8s.io/v1 VolumeAttachment": {
            "spec": {"attacher": "d.example.com", "nodeName": "n", "source": {"persistentVolumeName": "v"}}
        },
        "resource.k8s.io/v1 DeviceClass": {"spec": {}},
        "resource.k8s.io/v1 ResourceClaim": {"spec": {}},
        "resource.k8s.io/v1 ResourceClaimTemplate": {"spec": {"spec": {}}},
        "discovery.k8s.io/v1 EndpointSlice": {"addressType": "IPv4", "endpoints": []},
        "node.k8s.io/v1 RuntimeClass": {"handler": "h"},
        f"{RBAC}/v1 Role": role,
        f"{RBAC}/v1 ClusterRole": role,
    }
    for kind, body in bodies.items():
        api, _, word = kind.partition(" ")
        fields = {key: value for key, value in body.items() if key not in ("apiVersion", "kind", "metadata")}
        yield Case(f"name of {kind}: capital", thing(api, word, fields, "Ab"))
        yield Case(f"name of {kind}: dotted", thing(api, word, fields, "a.b"))
        yield Case(f"name of {kind}: slash", thing(api, word, fields, "a%b"))
        yield Case(f"name of {kind}: long", thing(api, word, fields, "a" * 254))
        yield Case(f"name of {kind}: labels", thing(api, word, fields, labels={"a b": "c"}, annotations={"": "x"}))


def further() -> Iterator[Case]:
    hosted = {"template": {"spec": {"hostname": "A", "subdomain": "B"}}}
    yield Case("statefulset: hostname is its own", stateful_set(hosted))
    yield Case("deployment: hostname", deployment(hosted))
    yield Case("statefulset: keeps all history", stateful_set({"revisionHistoryLimit": -1}))
    claim = {
        "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }
    yield Case("statefulset: update of claims", stateful_set(), spec(volumeClaimTemplates=[claim]))
    yield Case(
        "statefulset: bad claims",
        stateful_set(
            {"volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": {"accessModes": [], "resources": {}}}]}
        ),
    )
    yield Case(
        "statefulset: update of the history",
        stateful_set(),
        spec(revisionHistoryLimit=3, persistentVolumeClaimRetentionPolicy={"whenDeleted": "Delete"}),
    )
    yield Case("statefulset: update with a mistake", stateful_set(), spec(replicas=-3))
    yield Case("deployment: update of an annotation", deployment(), {"metadata": {"annotations": {"a": "b"}}})
    yield Case(
        "deployment: label by status",
        deployment(),
        {"metadata": {"labels": {"a": "b"}}, "status": {"replicas": 1}},
        "status",
    )
    yield Case("daemonset: update of an annotation", daemon_set(), {"metadata": {"annotations": {"a": "b"}}})
    yield Case(
        "daemonset: update of the strategy",
        daemon_set(),
        spec(updateStrategy={"type": "OnDelete", "rollingUpdate": None}),
    )
    yield Case("daemonset: update takes the annotation away", daemon_set(), {"metadata": {"annotations": None}})
    yield Case(
        "daemonset: numbered by its author", daemon_set(annotations={"deprecated.daemonset.template.generation": "7"})
    )
    yield Case("controllerrevision: data is text", thing("apps/v1", "ControllerRevision", {"data": "x", "revision": 1}))
    moved = {"nodeSelector": {"a": "b"}, "tolerations": [{"key": "a", "operator": "Exists"}]}
    yield Case(
        "job: suspended, more of where",
        job({"suspend": True}),
        spec(template={"metadata": {"annotations": {"a": "b"}}, "spec": moved}),
    )
    asked = [{"name": "c", "image": "registry.test/a", "resources": {"requests": {"cpu": "1"}}}]
    yield Case("job: suspended, how much", job({"suspend": True}), spec(template={"spec": {"containers": asked}}))
    terms = {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Exists"}]}]
        }
    }
    yield Case(
        "job: suspended, affinity",
        job({"suspend": True}),
        spec(template={"spec": {"affinity": {"nodeAffinity": terms}}}),
    )
    yield Case("job: unsuspended", job({"suspend": True}), spec(suspend=False))
    yield Case("job: update of limits", job(), spec(maxFailedIndexes=3))
    yield Case(
        "job: update of the failure policy",
        job(),
        spec(
            podFailurePolicy={"rules": [{"action": "Count", "onExitCodes": {"operator": "In", "values": [3]}}]},
            podReplacementPolicy="Failed",
        ),
    )
    yield Case("job: update of a label", job(), {"metadata": {"labels": {"x": "y"}}})
    yield Case(
        "job: index fails",
        job(
            {
                "completionMode": "Indexed",
                "completions": 3,
                "backoffLimitPerIndex": 1,
                "maxFailedIndexes": 2,
                "podFailurePolicy": {
                    "rules": [{"action": "FailIndex", "onExitCodes": {"operator": "NotIn", "values": [0]}}]
                },
            }
        ),
    )
    yield Case("job: rule without words", job({"podFailurePolicy": {"rules": [{"onExitCodes": {"values": [1]}}]}}))
    yield Case("job: managed with a bad host", job({"managedBy": "Bad_Host/x y"}))
    yield Case("job: managed by nobody", job({"managedBy": ""}))
    yield Case("job: managed at length", job({"managedBy": "example.com/" + "a" * 60}))
    yield Case("job: bad selector by hand", job({"manualSelector": True, "selector": {"matchLabels": {"a b": "c"}}}))
    yield Case(
        "job: negative success",
        job({"completionMode": "Indexed", "completions": 2, "successPolicy": {"rules": [{"succeededCount": -1}]}}),
    )
    for number, schedule in enumerate(
        (
            "1-2-3 * * * *",
            "1/2/3 * * * *",
            "-1 * * * *",
            "* 24 * * *",
            "* * * 13 *",
            "* * * foo *",
            "* * * * 7",
            "* * * * SUN-MON",
            "0 0 29 2 *",
            "1,2,x * * * *",
            "*/x * * * *",
            "99999999999999999999 * * * *",
            "@every 1h30m",
            "@every",
            "CRON_TZ=UTC 0 * * * *",
        )
    ):
        yield Case(f"cronjob: schedule {number}", cron_job({"schedule": schedule}))
    yield Case(
        "cronjob: job labels",
        cron_job({"jobTemplate": {"metadata": {"labels": {"a": "b"}}, "spec": {"parallelism": 2}}}),
    )
    yield Case("cronjob: dotted name", cron_job(name="a.b"))
    yield Case("cronjob: update of the zone", cron_job(), spec(timeZone="Mars/Base"))
    yield Case(
        "pdb: none", thing("policy/v1", "PodDisruptionBudget", {"spec": {"maxUnavailable": "0%", "selector": {}}})
    )
    yield Case(
        "pdb: update to both",
        thing("policy/v1", "PodDisruptionBudget", {"spec": {"maxUnavailable": 1, "selector": SELECTS}}),
        spec(minAvailable=1),
    )
    yield Case(
        "pdb: update of a label",
        thing("policy/v1", "PodDisruptionBudget", {"spec": {}}),
        {"metadata": {"labels": {"a": "b"}}},
    )
    yield Case("priority: no value", thing("scheduling.k8s.io/v1", "PriorityClass", {}, "p"))
    yield Case(
        "priority: lowest",
        thing("scheduling.k8s.io/v1", "PriorityClass", {"value": -2147483648, "preemptionPolicy": ""}, "p"),
    )
    api = "storage.k8s.io/v1"
    yield Case(
        "csidriver: period",
        thing(api, "CSIDriver", {"spec": {"nodeAllocatableUpdatePeriodSeconds": 5}}, "d.example.com"),
    )
    yield Case(
        "csidriver: secrets", thing(api, "CSIDriver", {"spec": {"serviceAccountTokenInSecrets": True}}, "d.example.com")
    )
    both = {
        "persistentVolumeName": "v",
        "inlineVolumeSpec": {"capacity": {"storage": "1"}, "accessModes": ["ReadWriteOnce"]},
    }
    yield Case(
        "attachment: both", thing(api, "VolumeAttachment", {"spec": {"attacher": "d", "nodeName": "n", "source": both}})
    )
    yield Case(
        "attachment: bad names",
        thing(
            api,
            "VolumeAttachment",
            {"spec": {"attacher": "D_e", "nodeName": "N", "source": {"persistentVolumeName": "V"}}},
        ),
    )
    attached = thing(
        api, "VolumeAttachment", {"spec": {"attacher": "d", "nodeName": "n", "source": {"persistentVolumeName": "v"}}}
    )
    yield Case(
        "attachment: bad status",
        attached,
        {"status": {"attached": False, "attachError": {"message": "m" * 1025, "errorCode": -1}}},
        "status",
    )
    twice = [{"matchLabelExpressions": [{"key": "zone", "values": ["a"]}]}] * 2
    yield Case(
        "storageclass: same topology twice",
        thing(api, "StorageClass", {"provisioner": "p", "allowedTopologies": twice}),
    )
    yield Case(
        "csinode: long id",
        thing(api, "CSINode", {"spec": {"drivers": [{"name": "d", "nodeID": "n" * 257, "topologyKeys": None}]}}, "n"),
    )
    yield Case(
        "csinode: long name of a driver",
        thing(api, "CSINode", {"spec": {"drivers": [{"name": LONG, "nodeID": "n", "topologyKeys": None}]}}, "n"),
    )
    devices = "resource.k8s.io/v1"
    some = [
        {"name": "S", "deviceClassName": ""},
        {"name": "s", "deviceClassName": "g"},
        {"name": "s", "deviceClassName": "g"},
    ]
    yield Case(
        "claim: bad choices",
        thing(devices, "ResourceClaim", {"spec": {"devices": {"requests": [{"name": "r", "firstAvailable": some}]}}}),
    )
    exact = {"name": "r", "exactly": {"deviceClassName": "g"}}
    both_kinds = {**exact, "firstAvailable": [{"name": "s", "deviceClassName": "g"}]}
    yield Case("claim: both kinds", thing(devices, "ResourceClaim", {"spec": {"devices": {"requests": [both_kinds]}}}))
    yield Case(
        "claim: bad config",
        thing(
            devices,
            "ResourceClaim",
            {"spec": {"devices": {"requests": [exact], "config": [{"requests": ["r", "q", "a/b/c"]}]}}},
        ),
    )
    yield Case(
        "claim: config",
        thing(
            devices,
            "ResourceClaim",
            {
                "spec": {
                    "devices": {
                        "requests": [exact],
                        "config": [{"requests": ["r"], "opaque": {"driver": "d.example.com", "parameters": {"a": 1}}}],
                    }
                }
            },
        ),
    )
    claim_body = thing(devices, "ResourceClaim", {"spec": {"devices": {"requests": [exact]}}})
    yield Case(
        "claim: reserved without allocation",
        claim_body,
        {"status": {"reservedFor": [{"resource": "pods", "name": "p", "uid": "u"}]}},
        "status",
    )
    yield Case(
        "claim: reserved badly",
        claim_body,
        {"status": {"reservedFor": [{"resource": "", "name": "", "uid": ""}]}},
        "status",
    )
    yield Case("deviceclass: config", thing(devices, "DeviceClass", {"spec": {"config": [{}]}}))
    yield Case(
        "deviceclass: update",
        thing(devices, "DeviceClass", {"spec": {}}),
        spec(config=[{"opaque": {"driver": "d.example.com", "parameters": {"a": 1}}}]),
    )
    pool = {"name": "p", "generation": 1, "resourceSliceCount": 1}
    sliced = {"spec": {"driver": "d.example.com", "pool": pool, "allNodes": True}}
    yield Case("slice: all nodes", thing(devices, "ResourceSlice", sliced))
    yield Case(
        "slice: bad version",
        thing(
            devices,
            "ResourceSlice",
            merged(sliced, spec(devices=[{"name": "d", "attributes": {"v": {"version": "1"}}}])),
        ),
    )
    yield Case("slice: update of the pool", thing(devices, "ResourceSlice", sliced), spec(pool={"name": "q"}))
    yield Case("slice: update of devices", thing(devices, "ResourceSlice", sliced), spec(devices=[{"name": "d"}]))
    yield Case("slice: not all nodes", thing(devices, "ResourceSlice", merged(sliced, spec(allNodes=False))))
    endpoint = {
        "addresses": ["10.1.2.3"],
        "hints": {"forZones": [{"name": "a"}, {"name": "a"}, {"name": "b c"}], "forNodes": [{"name": "N"}]},
    }
    sliced6 = {"addressType": "IPv6", "endpoints": [{"addresses": ["10.0.0.1", "fd00::1", "::1", "fe80::1", "::"]}]}
    discovered = "discovery.k8s.io/v1"
    yield Case(
        "endpointslice: hints", thing(discovered, "EndpointSlice", {"addressType": "IPv4", "endpoints": [endpoint]})
    )
    yield Case("endpointslice: IPv6", thing(discovered, "EndpointSlice", sliced6))
    yield Case(
        "endpointslice: protocols",
        thing(
            discovered,
            "EndpointSlice",
            {"addressType": "IPv4", "endpoints": [], "ports": [{"name": "a", "appProtocol": "a b", "port": 1}]},
        ),
    )
    yield Case(
        "endpointslice: update of a label",
        thing(discovered, "EndpointSlice", {"addressType": "IPv4", "endpoints": []}),
        {"metadata": {"labels": {"a": "b"}}},
    )
    tolerated = [
        {"key": "a", "operator": "Exists"},
        {"key": "a", "operator": "Exists"},
        {"key": "b", "operator": "Odd"},
    ]
    yield Case(
        "runtimeclass: tolerations",
        thing("node.k8s.io/v1", "RuntimeClass", {"handler": "h", "scheduling": {"tolerations": tolerated}}),
    )
    yield Case(
        "runtimeclass: update of overhead",
        thing("node.k8s.io/v1", "RuntimeClass", {"handler": "h"}),
        {"overhead": {"podFixed": {"cpu": "1"}}},
    )
    told = {
        "regarding": {"kind": "Node", "name": "n"},
        "reason": "R",
        "type": "Normal",
        "action": "A",
        "eventTime": "2026-01-01T00:00:00.000000Z",
        "reportingController": "c",
        "reportingInstance": "i" * 129,
    }
    yield Case("event: long instance", thing("events.k8s.io/v1", "Event", told))
    yield Case(
        "event: old fields",
        thing(
            "events.k8s.io/v1",
            "Event",
            {
                **told,
                "reportingInstance": "i",
                "deprecatedCount": 2,
                "deprecatedSource": {"component": "c"},
                "deprecatedFirstTimestamp": "2026-01-01T00:00:00Z",
            },
        ),
    )


def cases() -> list[Case]:
    from server.kinds.corpus_autoscaling import autoscaling_cases
    from server.kinds.corpus_flowcontrol import flow_control_cases
    from server.kinds.corpus_networking import networking_cases

    makers = (
        deployments,
        replica_sets,
        stateful_sets,
        daemon_sets,
        revisions,
        jobs,
        cron_jobs,
        budgets,
        priorities,
        groups,
        leases,
        storage,
        access,
        api_services,
        devices,
        others,
        names,
        further,
    )
    return [
        *(case for make in makers for case in make()),
        *networking_cases(),
        *flow_control_cases(),
        *autoscaling_cases(),
    ]
