"""Says what happens in a journey, to whoever runs it by `make basic-integration-test` and the like (by pytest -s)."""

import time

from kubernetes.cluster import Cluster


class Story:
    """Lines with the seconds since the beginning, and tables as kubectl prints them."""

    def __init__(self, cluster: Cluster, title: str) -> None:
        self._cluster = cluster
        self._begun = time.monotonic()
        print(f"\n── {title}")

    def tell(self, line: str) -> None:
        print(f"{time.monotonic() - self._begun:6.1f} s  {line}")

    def show_pods(self) -> None:
        columns = "POD:.metadata.name,PRIORITY:.spec.priority,PHASE:.status.phase,NODE:.spec.nodeName"
        self._table("get", "pods", f"--output=custom-columns={columns}")

    def show_events(self) -> None:
        """What the scheduler said, oldest first."""
        columns = "EVENT:.reason,ABOUT:.regarding.name,SAYS:.note"
        self._table(
            "get", "events.events.k8s.io", "--sort-by=.metadata.creationTimestamp", f"--output=custom-columns={columns}"
        )

    def _table(self, *arguments: str) -> None:
        for line in self._cluster.kubectl(*arguments).splitlines():
            print(f"          {line.rstrip()}")
