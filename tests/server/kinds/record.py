"""Ask a real API server the cases of data/cases.txt and data/bases.yaml, and write down what it says.

Run in the repository, with the binaries built: `PYTHONPATH=src:tests python tests/server/kinds/record.py`.
Nothing is left behind but data/answers.json.gz.
"""

import gzip
import json
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from kubernetes.api import path_of
from kubernetes.cluster import Cluster
from server.kinds.corpus import ANSWERS, Case, Json, bases, cases, causes_of, changed, told

DRY = "?dryRun=All&fieldValidation=Ignore"


def ask(cluster: Cluster, method: str, path: str, body: Json | None) -> tuple[int, Json]:
    headers = {"Authorization": f"Bearer {cluster.api.token}", "Content-Type": "application/json"}
    data = None if body is None else json.dumps(body).encode()
    connection = cluster.api._connection()
    connection.request(method, path, data, headers)
    response = connection.getresponse()
    said = json.loads(response.read())
    said["warnings"] = warnings_in(response.headers.get_all("Warning") or ())
    return response.status, said


def warnings_in(headers: Iterable[str]) -> list[str]:
    return [json.loads(one.removeprefix("299 - ")) for one in headers]


def answer(status: int, said: Json) -> dict[str, Any]:
    warned = said.pop("warnings")
    if status < 400:
        return {"code": status, "object": told(said), "warnings": sorted(warned)}
    return {
        "code": status,
        "reason": said.get("reason", ""),
        "causes": causes_of(said),
        "message": said["message"][:300],
    }


def path_to(base: Json) -> str:
    return path_of({**base, "kind": base["kind"].removesuffix("s")}, "default")


def stored(cluster: Cluster, base: Json) -> Json:
    """Create a base for good; with its status, if it has one."""
    where = path_to(base)
    status, made = ask(cluster, "POST", where, base)
    if status < 400 and "status" in base and base["kind"] != "Node":
        own = f"{where}/{made['metadata']['name']}/status"
        status, made = ask(cluster, "PUT", own, {**made, "status": base["status"]})
    if status >= 400:
        raise SystemExit(f"{base['metadata']['name']}: {made['message']}")
    del made["warnings"]
    return made


def updated(cluster: Cluster, case: Case, kept: Json) -> dict[str, Any]:
    own = f"{path_to(kept)}/{kept['metadata']['name']}"
    suffix = "/status" if case.verb == "status" else ""
    return answer(*ask(cluster, "PUT", own + suffix + DRY, changed(kept, case.changes)))


def main() -> None:
    found: dict[str, Any] = {}
    starts = bases()
    with tempfile.TemporaryDirectory() as folder, Cluster(Path(folder)) as cluster:
        every = cases()
        # What is created is only tried, so that names stay free; what is updated is really there.
        for case in every:
            if case.verb == "create":
                body = changed(starts[case.base], case.changes)
                found[case.text] = answer(*ask(cluster, "POST", path_to(starts[case.base]) + DRY, body))
        # Limits and quotas last: they would be applied to pods.
        last = sorted(starts, key=lambda name: starts[name]["kind"] in ("LimitRange", "ResourceQuota"))
        kept = {name: stored(cluster, starts[name]) for name in last}
        for case in every:
            if case.verb != "create":
                found[case.text] = updated(cluster, case, kept[case.base])
    with gzip.GzipFile(ANSWERS, "wb", mtime=0) as file:
        file.write(json.dumps(found, separators=(",", ":"), sort_keys=True).encode())
    print(f"{len(found)} answers, {ANSWERS.stat().st_size} bytes")


if __name__ == "__main__":
    main()
