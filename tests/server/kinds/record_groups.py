"""Ask kube-apiserver what it answers to the bodies of corpus_groups.py, and write it down in data/groups.json.gz.

Run in the repository, with the binaries built: `PYTHONPATH=src:tests python tests/server/kinds/record_groups.py`.
Creations are dry runs; an update needs something to update, which is removed again.
"""

import contextlib
import gzip
import json
import ssl
import sys
import tempfile
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from kubernetes.cluster import Cluster
from server.kinds.corpus_groups import ANSWERS, Case, Json, cases, merged, path_of

DRY = "dryRun=All&fieldValidation=Ignore"
UNSAID = ("uid", "creationTimestamp", "resourceVersion", "managedFields")


class Asker:
    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.tls = ssl.create_default_context(cafile=str(cluster.certificate))

    def __call__(self, method: str, path: str, body: Json | None = None) -> tuple[int, Json, list[str]]:
        headers = {"Authorization": f"Bearer {self.cluster.api.token}", "Content-Type": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        asked = urllib.request.Request(f"{self.cluster.url}{path}", data, headers, method=method)
        try:
            answer = urllib.request.urlopen(asked, context=self.tls)
        except urllib.error.HTTPError as refused:
            answer = refused
        with contextlib.closing(answer):
            return answer.status, json.loads(answer.read()), answer.headers.get_all("Warning") or []


def without_identity(obj: Json) -> Json:
    """What is the same whoever made it: uids are UID, times are left out."""
    uid = obj["metadata"].get("uid")
    for key in UNSAID:
        obj["metadata"].pop(key, None)
    found: Json = json.loads(json.dumps(obj).replace(uid, "UID")) if uid else obj
    return found


def answered(status: int, said: Json, warnings: list[str], uid: str) -> Json:
    told: dict[str, Any] = {"code": status}
    if warnings:
        told["warnings"] = [text.removeprefix('299 - "').removesuffix('"').replace('\\"', '"') for text in warnings]
    if status < 300:
        return told | {"object": without_identity(said)}
    causes = said.get("details", {}).get("causes", [])
    keys = ("field", "message", "reason")
    return told | {"causes": [[one.get(key, "").replace(uid, "UID") for key in keys] for one in causes]}


def ask(asker: Asker, case: Case) -> Json:
    path, name = path_of(case.body), case.body["metadata"]["name"]
    if case.change is None:
        status, said, warnings = asker("POST", f"{path}?{DRY}", case.body)
        return answered(status, said, warnings, _uid_in(said))
    status, made, _ = asker("POST", path, case.body)
    if status >= 300:
        raise SystemExit(f"{case.title}: {made['message']}")
    place = f"{path}/{name}/status" if case.subresource else f"{path}/{name}"
    status, said, warnings = asker("PUT", f"{place}?{DRY}", merged(made, case.change))
    asker("DELETE", f"{path}/{name}?propagationPolicy=Background")
    return answered(status, said, warnings, made["metadata"]["uid"])


def _uid_in(status: Json) -> str:
    """Of a Job that was refused: it is shown only inside a message."""
    for cause in status.get("details", {}).get("causes", []):
        _, found, rest = cause["message"].partition('controller-uid":"')
        if found:
            return str(rest.partition('"')[0])
    return "no uid"


def main() -> None:
    with tempfile.TemporaryDirectory() as home, Cluster(Path(home)) as cluster:
        asker = Asker(cluster)
        found = {case.title: ask(asker, case) for case in cases()}
    with gzip.GzipFile(ANSWERS, "wb", mtime=0) as file:
        file.write(json.dumps(found, separators=(",", ":"), sort_keys=True).encode())
    print(f"{len(found)} answers, {ANSWERS.stat().st_size} bytes", file=sys.stderr)


if __name__ == "__main__":
    main()
