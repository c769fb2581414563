"""Ask kube-apiserver how it prints the objects of corpus.py, and write its answers down in data/rows.json.

Run in the repository, with the binaries built: `PYTHONPATH=src:tests python tests/server/tables/record.py`.
Every age is in whole seconds, so a row is good if the second did not change while it was asked for.
"""

import contextlib
import json
import ssl
import sys
import tempfile
import time
import urllib.request
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from kubernetes.api import Json, RefusedError
from kubernetes.cluster import Cluster
from server.tables import corpus
from situate.server.resources import BY_KIND

HERE = Path(__file__).parent
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
TRIES = 20


def path_of(wanted: Json) -> str:
    resource = BY_KIND[wanted["apiVersion"], wanted["kind"]]
    root = f"/apis/{resource.api_version}" if resource.group else "/api/v1"
    return f"{root}/namespaces/default/{resource.plural}" if resource.namespaced else f"{root}/{resource.plural}"


def ago(seconds: int) -> str:
    return datetime.fromtimestamp(int(time.time()) - seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def make(cluster: Cluster, wanted: Json, hold: str) -> str:
    """The path of the object, as it should be."""
    status = wanted.pop("status", None)
    going = wanted["metadata"].pop("deletionTimestamp", None)
    if going:
        wanted["metadata"]["finalizers"] = [hold]
    path = f"{path_of(wanted)}/{wanted['metadata']['name']}"
    with contextlib.suppress(RefusedError):
        cluster.api.delete(path)
    try:
        made = cluster.api.post(path_of(wanted), wanted)
    except RefusedError as refused:
        refused.add_note(path)
        raise
    if status:
        cluster.api.put(f"{path}/status", made | {"status": status})
    if going:
        cluster.api.delete(path)
    return path


def row(cluster: Cluster, path: str) -> tuple[Json, int]:
    """The table of one object, and the second in which it was made."""
    tls = ssl.create_default_context(cafile=str(cluster.certificate))
    headers = {"Authorization": f"Bearer {cluster.api.token}", "Accept": TABLE}
    for _ in range(TRIES):
        asked = urllib.request.Request(f"{cluster.url}{path}?includeObject=Object", headers=headers)
        before = int(time.time())
        with urllib.request.urlopen(asked, context=tls) as answer:
            table = json.load(answer)
        if before == int(time.time()):
            return table, before
    raise TimeoutError(path)


def record(cluster: Cluster) -> list[Json]:
    found: list[Json] = []
    for wanted in corpus.everything(ago):
        path = make(cluster, wanted, corpus.HOLD)
        table, now = row(cluster, path)
        one: dict[str, Any] = table["rows"][0]
        one["object"]["metadata"].pop("managedFields", None)
        columns = [
            [column[key] for key in ("name", "type", "format", "priority")] for column in table["columnDefinitions"]
        ]
        found.append(
            {
                "now": now,
                "object": one["object"],
                "cells": one["cells"],
                "columns": columns,
                "conditions": one.get("conditions", []),
            }
        )
    return found


def main() -> None:
    with tempfile.TemporaryDirectory() as home, Cluster(Path(home)) as cluster:
        rows = record(cluster)
    lines = ",\n".join(json.dumps(one, separators=(",", ":"), sort_keys=True) for one in rows)
    (HERE / "data" / "rows.json").write_text(f"[\n{lines}\n]\n")
    print(f"{len(rows)} rows", file=sys.stderr)


if __name__ == "__main__":
    main()
