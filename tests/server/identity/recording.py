"""Ask a real kube-apiserver all that world.py asks, and write down what it says.

By hand, when the questions change: PYTHONPATH=src:tests python -m server.identity.recording
Makes facts.json: `may` has, for each question, a number for each asker whose bits are the verbs it may use; `told` what
came of each probe, as code and message; `roles` the roles and bindings that every cluster begins with.
"""

import json
import ssl
import tempfile
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from kubernetes.api import RefusedError
from kubernetes.cluster import Cluster
from server.identity.probes import PROBES, Probe
from server.identity.world import ASKERS, RBAC, Asker, Json, Question, objects, questions

FACTS = Path(__file__).parent / "facts.json"
FLAGS = ("--authorization-mode=Node", "--enable-admission-plugins=NodeRestriction")
THREADS = 4


def asked(question: Question, verb: str, who: Asker) -> Json:
    spec: Json = {"user": who.name, "groups": list(who.groups)}
    if question.path:
        spec["nonResourceAttributes"] = {"verb": verb, "path": question.path}
    else:
        parts = {
            "verb": verb,
            "group": question.group,
            "resource": question.resource,
            "subresource": question.subresource,
            "namespace": question.namespace,
            "name": question.name,
        }
        spec["resourceAttributes"] = {key: value for key, value in parts.items() if value}
        if question.fields:
            spec["resourceAttributes"]["fieldSelector"] = {"rawSelector": question.fields}
    return {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec}


def may(cluster: Cluster, question: Question) -> list[int]:
    row = []
    for who in ASKERS:
        bits = 0
        for index, verb in enumerate(question.verbs):
            review = asked(question, verb, who)
            try:
                answer = cluster.api.post("/apis/authorization.k8s.io/v1/subjectaccessreviews", review)
            except RefusedError:
                continue
            bits |= bool(answer["status"].get("allowed")) << index
        row.append(bits)
    return row


def gather(cluster: Cluster) -> None:
    """What kube-controller-manager would do: aggregated roles have the rules of all whom they select."""
    for name in ("view", "edit", "admin"):
        label = f"rbac.authorization.k8s.io%2Faggregate-to-{name}%3Dtrue"
        parts = cluster.api.items(f"/apis/{RBAC}/clusterroles?labelSelector={label}")
        role = cluster.api.get(f"/apis/{RBAC}/clusterroles/{name}")
        role["rules"] = []
        for part in sorted(parts, key=lambda one: str(one["metadata"]["name"])):
            role["rules"] += [rule for rule in part.get("rules") or [] if rule not in role["rules"]]
        cluster.api.put(f"/apis/{RBAC}/clusterroles/{name}", role)


def told(cluster: Cluster, probe: Probe) -> list[Any]:
    """The probe's answer: its code and message, or 200 and nothing; nothing is changed (dryRun)."""
    context = ssl.create_default_context(cafile=str(cluster.certificate))
    separator = "&" if "?" in probe.path else "?"
    body = probe.filled(cluster.api.get)
    request = urllib.request.Request(
        f"{cluster.url}{probe.path}{separator}dryRun=All",
        data=json.dumps(body).encode() if body is not None else None,
        method=probe.method,
        headers={
            "Authorization": f"Bearer {cluster.tokens['admin']}",
            "Content-Type": "application/merge-patch+json" if probe.method == "PATCH" else "application/json",
            "Impersonate-User": probe.who.name,
        },
    )
    # urllib keeps one header of a name, so all groups go in as the ones that impersonation itself does not add.
    groups = [group for group in probe.who.groups if group != "system:authenticated"]
    if groups:
        request.add_header("Impersonate-Group", groups[0])
    try:
        with urllib.request.urlopen(request, context=context):
            return [200, ""]
    except urllib.error.HTTPError as error:
        answer = json.loads(error.read())
        return [error.code, answer["message"]]


def bootstrap(cluster: Cluster) -> Json:
    found: Json = {}
    for plural in ("clusterroles", "clusterrolebindings", "roles", "rolebindings"):
        for item in cluster.api.items(f"/apis/{RBAC}/{plural}"):
            metadata = item["metadata"]
            kept = {key: item[key] for key in ("rules", "subjects", "roleRef", "aggregationRule") if item.get(key)}
            if metadata.get("labels"):
                kept["labels"] = metadata["labels"]
            where = f"{metadata['namespace']}/" if "namespace" in metadata else ""
            found[f"{plural}/{where}{metadata['name']}"] = kept
    return found


def main() -> None:
    with tempfile.TemporaryDirectory() as home, Cluster(Path(home), apiserver_flags=FLAGS) as cluster:
        time.sleep(3)
        roles = bootstrap(cluster)
        for thing in objects():
            cluster.create(thing)
        gather(cluster)
        time.sleep(3)
        every = list(questions())
        with ThreadPoolExecutor(THREADS) as pool:
            rows = list(pool.map(lambda question: may(cluster, question), every))
        answers = {probe.id: told(cluster, probe) for probe in PROBES}
    lines = [
        '"may": [\n'
        + ",\n".join(json.dumps([*question[:7], row]) for question, row in zip(every, rows, strict=True))
        + "\n]",
        '"told": ' + json.dumps(answers, indent=0),
        '"roles": {\n' + ",\n".join(f"{json.dumps(key)}: {json.dumps(one)}" for key, one in roles.items()) + "\n}",
    ]
    FACTS.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
