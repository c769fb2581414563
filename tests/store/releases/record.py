"""Records the store that a release writes, as SQL. The next releases have to open it.

    git worktree add /tmp/release <commit>
    PYTHONPATH=/tmp/release/src python tests/store/releases/record.py > tests/store/releases/<format>-<commit>.sql
    git worktree remove /tmp/release

It imports nothing but that release, so it has to be run before the release's own interfaces change.
"""

import asyncio
import importlib
import importlib.util
import io
import itertools
import sys
import tempfile
from pathlib import Path
from typing import Any

import apsw
from apsw.shell import Shell

from situate.server.registry.registry import Registry
from situate.server.resources import RESOURCES
from situate.store.sqlite.store import SqliteStore

# The module has had two names.
_REQUESTS = "situate.server.requests"
requests: Any = importlib.import_module(_REQUESTS if importlib.util.find_spec(_REQUESTS) else "situate.server.asking")

START_NS = 1_700_000_000_000_000_000
OBJECTS: list[dict[str, Any]] = [
    {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}},
    {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node-1"}, "status": {"allocatable": {"cpu": "4"}}},
    {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "kept", "namespace": "shop"}, "data": {"a": "b"}},
    {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "gone", "namespace": "shop"}},
    {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "key", "namespace": "shop"}, "data": {"k": "c2VjcmV0"}},
    {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "web-0", "namespace": "shop", "labels": {"app": "web"}},
        "spec": {"containers": [{"name": "c", "image": "web:1"}]},
    },
    {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": "node-1", "namespace": "shop"},
        "spec": {"holderIdentity": "node-1", "leaseDurationSeconds": 40},
    },
    {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "web-0.1", "namespace": "shop"},
        "involvedObject": {"kind": "Pod", "name": "web-0", "namespace": "shop"},
        "reason": "Scheduled",
    },
]


def target(obj: dict[str, Any], name: str = "") -> Any:
    version, kind = obj["apiVersion"], obj["kind"]
    group = version.rpartition("/")[0]
    resource = next(one for one in RESOURCES if one.kind == kind and one.group == group)
    return requests.Target(resource, obj["metadata"].get("namespace", ""), name)


async def write(path: Path) -> None:
    clock, uids = itertools.count(START_NS, 1_000_000_000), itertools.count(1)
    caller = requests.Caller("recorder")
    store = await SqliteStore.open(path)
    registry = Registry(store, wall_ns=lambda: next(clock), new_uid=lambda: f"00000000-0000-4000-8000-{next(uids):012}")
    await registry.start()
    for obj in OBJECTS:
        await registry.create(target(obj), obj, caller)
    changed = OBJECTS[2]
    await registry.update(target(changed, "kept"), changed | {"data": {"a": "c"}}, caller)
    await registry.delete(target(OBJECTS[3], "gone"), caller)
    await registry.aclose()
    await store.aclose()


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "store.db"
        asyncio.run(write(path))
        connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
        dump = io.StringIO()
        shell: Any = Shell(stdout=dump, db=connection)
        shell.process_command(".dump")
        sys.stdout.writelines(line for line in dump.getvalue().splitlines(True) if line.strip() and line[:2] != "--")


if __name__ == "__main__":
    main()
