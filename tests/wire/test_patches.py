"""Patches are JSON that says what it should, and no more."""

import json
from typing import Any

import pytest

from situate.core.changes import PodRef
from situate.wire.patches import (
    ConditionPatch,
    bind_volume,
    release_volume,
    select_node,
    series_patch,
    status_patch,
)

NS = 1_767_225_600_123_456_789


@pytest.mark.parametrize(
    "made, body",
    [
        pytest.param(
            series_patch(2, NS),
            {"series": {"count": 2, "lastObservedTime": "2026-01-01T00:00:00.123456Z"}},
            id="an event came again",
        ),
        pytest.param(
            status_patch("u", "9", [], "n1"),
            {"metadata": {"uid": "u", "resourceVersion": "9"}, "status": {"nominatedNodeName": "n1"}},
            id="a nomination",
        ),
        pytest.param(
            status_patch("u", "", [], ""),
            {"metadata": {"uid": "u"}, "status": {"nominatedNodeName": None}},
            id="a nomination that is taken back",
        ),
        pytest.param(
            status_patch("", "", [ConditionPatch("T", "True", "R", 'a "message"')], None),
            {"status": {"conditions": [{"type": "T", "status": "True", "reason": "R", "message": 'a "message"'}]}},
            id="a condition that keeps its time",
        ),
        pytest.param(
            status_patch("", "", [ConditionPatch("T", "False", "R", "m", 4, NS)], "n"),
            {
                "status": {
                    "conditions": [
                        {
                            "type": "T",
                            "status": "False",
                            "reason": "R",
                            "message": "m",
                            "observedGeneration": 4,
                            "lastTransitionTime": "2026-01-01T00:00:00Z",
                        }
                    ],
                    "nominatedNodeName": "n",
                }
            },
            id="a new condition beside a nomination",
        ),
        pytest.param(
            bind_volume("5", PodRef("ns", "c", "u"), "", annotate=True),
            {
                "metadata": {"resourceVersion": "5", "annotations": {"pv.kubernetes.io/bound-by-controller": "yes"}},
                "spec": {
                    "claimRef": {
                        "apiVersion": "v1",
                        "kind": "PersistentVolumeClaim",
                        "namespace": "ns",
                        "name": "c",
                        "uid": "u",
                    }
                },
            },
            id="a volume that is given to a claim",
        ),
        pytest.param(
            release_volume("5"),
            {
                "metadata": {"resourceVersion": "5", "annotations": {"pv.kubernetes.io/bound-by-controller": None}},
                "spec": {"claimRef": None},
            },
            id="a volume that is let go",
        ),
        pytest.param(
            select_node("u", "5", "n1"),
            {
                "metadata": {
                    "uid": "u",
                    "resourceVersion": "5",
                    "annotations": {"volume.kubernetes.io/selected-node": "n1"},
                }
            },
            id="a claim that is to be provisioned",
        ),
    ],
)
def test_a_patch_says_this(made: bytes, body: dict[str, Any]) -> None:
    assert json.loads(made) == body
