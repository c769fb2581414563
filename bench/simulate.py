"""Time `situate simulate`: 100,000 pods that come and go on 5,000 nodes. Prints how long the command took, all of it.

python bench/simulate.py [pods] [nodes]
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter

CPU_MILLIS = (100, 250, 500, 1_000, 2_000)
MEMORY_MIB = (256, 1_024, 2_048, 4_096)
A_SECOND = 200
RUN = "exp:5m"


def node(number: int) -> dict[str, object]:
    name = f"node-{number:05}"
    labels = {"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": f"zone-{number % 3}"}
    meta = {"name": name, "uid": name, "resourceVersion": "1", "labels": labels}
    room = {"cpu": "16", "memory": "64Gi", "pods": "110"}
    return {"apiVersion": "v1", "kind": "Node", "metadata": meta, "spec": {}, "status": {"allocatable": room}}


def deployment(number: int, cpu: int, memory: int, replicas: int) -> dict[str, object]:
    labels = {"app": f"app-{number}"}
    container = {"name": "main", "resources": {"requests": {"cpu": f"{cpu}m", "memory": f"{memory}Mi"}}}
    meta = {"labels": labels, "annotations": {"situate.dev/duration": RUN}}
    spec = {
        "replicas": replicas,
        "selector": {"matchLabels": labels},
        "template": {"metadata": meta, "spec": {"containers": [container]}},
    }
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": f"app-{number}"}, "spec": spec}


def wrote(path: Path, items: list[dict[str, object]]) -> str:
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    return str(path)


def main() -> None:
    pods = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    nodes = int(sys.argv[2]) if len(sys.argv) > 2 else 5_000
    shapes = [(cpu, memory) for cpu in CPU_MILLIS for memory in MEMORY_MIB]
    with tempfile.TemporaryDirectory() as folder:
        cluster = wrote(Path(folder, "cluster.json"), [node(number) for number in range(nodes)])
        made = [deployment(at, *shape, pods // len(shapes)) for at, shape in enumerate(shapes)]
        workload = wrote(Path(folder, "workload.json"), made)
        command = [sys.executable, "-m", "situate", "simulate", "-f", cluster, "-w", workload]
        began = perf_counter()
        done = subprocess.run(
            [*command, "--arrivals", f"poisson:{A_SECOND}", "-o", "json"], capture_output=True, check=True
        )
        took = perf_counter() - began
    (one,) = json.loads(done.stdout)["configurations"]
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    told = {
        "arrived": one["pods"]["arrived"],
        "placed": one["pods"]["placed"],
        "finished": one["pods"]["finished"],
        "seconds": round(took, 1),
        "cpu_seconds": round(used.ru_utime + used.ru_stime, 1),
        "rss_mb": round(used.ru_maxrss / 1_024),
    }
    print(json.dumps(told))


if __name__ == "__main__":
    main()
