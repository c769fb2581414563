"""Pod rows: what is kept of a bound pod, and that it is told apart from the others of its class."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import node, pod
from situate.core.model.pod import Pod, PodCondition
from situate.core.model.timestamp import epoch_ms
from situate.core.state.cluster import Cluster
from situate.core.state.pods import LEAVING, PREEMPTED, leaving_as, timestamp_text
from situate.core.state.view import View

DELETED = "2026-01-01T00:00:00Z"


def target(status: str = "True", reason: str = "PreemptionByScheduler", message: str = "") -> PodCondition:
    return PodCondition(type="DisruptionTarget", status=status, reason=reason, message=message)


@pytest.mark.parametrize(
    "one,expected",
    [
        pytest.param(pod(), 0, id="nobody deletes it"),
        pytest.param(pod(conditions=(target(),)), 0, id="it is to be preempted, and not deleted yet"),
        pytest.param(pod(deletion_timestamp=DELETED), LEAVING, id="somebody deletes it"),
        pytest.param(pod(deletion_timestamp=DELETED, conditions=(target(),)), PREEMPTED, id="a scheduler deletes it"),
        pytest.param(
            pod(deletion_timestamp=DELETED, conditions=(target(reason="EvictionByEvictionAPI"),)),
            LEAVING,
            id="an operator deletes it",
        ),
        pytest.param(
            pod(deletion_timestamp=DELETED, conditions=(target(status="False"),)), LEAVING, id="it was to be preempted"
        ),
        pytest.param(
            pod(deletion_timestamp=DELETED, conditions=(PodCondition(type="Ready"), target())),
            PREEMPTED,
            id="among other conditions",
        ),
        pytest.param(
            pod(deletion_timestamp=DELETED, conditions=(target(message="preempting to accommodate a pod"),)),
            PREEMPTED,
            id="whatever it was told",
        ),
    ],
)
def test_a_pod_is_leaving(one: Pod, expected: int) -> None:
    assert leaving_as(one) == expected


@given(st.integers(epoch_ms("0001-01-01T00:00:00Z"), epoch_ms("9999-12-31T23:59:59.999Z")))
def test_a_time_written_out_reads_back(ms: int) -> None:
    assert epoch_ms(timestamp_text(ms)) == ms


def test_a_row_that_is_used_again_keeps_nothing_of_who_had_it() -> None:
    cluster = Cluster()
    cluster.add_node(node("a"))
    cluster.add_pod(
        pod("old", node_name="a", uid="1", start_time=DELETED, creation_timestamp=DELETED, deletion_timestamp=DELETED)
    )
    cluster.remove_pod("default/old")
    with pytest.raises(LookupError, match="pod row 0 is empty"):
        cluster.pods.kind(0)
    cluster.add_pod(pod("new", node_name="a", uid="2"))
    (found,) = View(cluster).pods_on(0)
    assert (found.row, found.key, found.uid) == (0, "default/new", "2")
    assert (found.start_ms, found.created_ms, found.leaving, found.preempted) == (None, None, False, False)


def test_a_pod_without_a_namespace_is_told_by_its_name() -> None:
    cluster = Cluster()
    cluster.add_node(node("a"))
    cluster.add_pod(pod("bare", namespace="", node_name="a"))
    (found,) = View(cluster).pods_on(0)
    assert (found.namespace, found.name) == ("", "bare")
    assert cluster.remove_pod(found.key)
