"""NodeMetrics and PodMetrics: what nodes and pods use. server/usage computes them for each request."""

from __future__ import annotations

from typing import Final

from situate.server.kinds.kind import Kind

NODE_METRICS: Final = Kind(
    "metrics.k8s.io/v1beta1 nodes NodeMetrics C - - ! get list ~",
    columns="Name!, CPU = text(usage.cpu), Memory = text(usage.memory)",
    rights={"view": "get,list"},
    description="NodeMetrics says what the pods of a node use. It is computed, not stored.",
)
POD_METRICS: Final = Kind(
    "metrics.k8s.io/v1beta1 pods PodMetrics N - - ! get list ~",
    columns="Name!, Age",
    rights={"view": "get,list"},
    description="PodMetrics says what the containers of a pod use. It is computed, not stored.",
    words={"PodMetrics.window": "The time over which the usage was measured."},
)
