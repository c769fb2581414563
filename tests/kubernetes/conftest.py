"""The fixtures of the tests on a real cluster; README.md says how to use them.

One control plane a process, started by the first test that wants it. `make test` runs this folder in one process, since
nodes and schedulers are everybody's; under `pytest -n`, each worker has a cluster of its own: as right, and slower.
"""

import re
import secrets
from collections.abc import Iterator

import pytest

from kubernetes import parts
from kubernetes.cluster import Cluster

NAME_LENGTH = 24

# The chart's tests want helm besides. Where nothing is there at all, one line is enough to say so.
collect_ignore = [] if parts.missing() is None else ["test_chart.py"]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Where parts are absent, one test says so for all."""
    absent = parts.missing()
    if absent is None:
        return
    idle = [item for item in items if "control_plane" in getattr(item, "fixturenames", ())]
    for item in idle[:1]:
        item.add_marker(pytest.mark.skip(f"{len(idle)} tests: {absent}"))
    if idle[1:]:
        config.hook.pytest_deselected(items=idle[1:])
        items[:] = [item for item in items if item not in idle[1:]]


@pytest.fixture(scope="session")
def control_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with Cluster(tmp_path_factory.mktemp("cluster")) as cluster:
        yield cluster


@pytest.fixture
def cluster(control_plane: Cluster, request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """The control plane, empty, in a namespace of the test's own. What a test starts or makes goes when it ends."""
    name = re.sub(r"[^a-z0-9]+", "-", request.node.name.lower()).removeprefix("test-")[:NAME_LENGTH].strip("-")
    control_plane.namespace = control_plane.new_namespace(f"{name}-{secrets.token_hex(2)}")
    yield control_plane
    control_plane.wipe()
    control_plane.namespace = "default"
