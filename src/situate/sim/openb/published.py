"""The published results: percent of the GPUs allocated at 100 % and at 130 % arrival, means of ten seeds. From the
expected results of github.com/hkust-adsl/kubernetes-scheduler-simulator, the paper's artifact."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

NODES: Final = 1_213
GPUS: Final = 6_212
"""The cluster of the published results."""
MARKS: Final = (100, 130)
"""The marks of the published results, in percent."""

POLICIES: Final = ("Random", "DotProd", "GpuClustering", "GpuPacking", "BestFit", "FGD")

# fmt: off
_BY_WORKLOAD: Final[Mapping[str, tuple[tuple[float, float], ...]]] = {
    "cpu050": ((89.02, 91.24), (93.03, 93.27), (93.52, 93.79), (93.46, 93.72), (93.56, 93.79), (95.00, 95.21)),
    "cpu100": ((87.44, 89.11), (91.73, 91.95), (92.42, 92.64), (92.50, 92.72), (93.26, 93.44), (95.21, 95.35)),
    "cpu200": ((83.03, 83.77), (87.45, 87.70), (89.67, 89.92), (89.98, 90.22), (92.15, 92.40), (94.82, 95.05)),
    "cpu250": ((80.00, 80.42), (83.57, 83.81), (87.75, 87.99), (88.05, 88.28), (91.21, 91.45), (93.20, 93.41)),
    "default": ((86.30, 87.47), (90.62, 90.85), (91.65, 91.88), (91.78, 92.00), (92.86, 93.08), (95.23, 95.39)),
    "gpushare100": ((78.90, 79.44), (81.98, 82.42), (82.22, 82.65), (82.13, 82.57), (84.62, 85.01), (86.64, 86.90)),
    "gpushare40": ((84.86, 86.00), (89.30, 89.56), (89.76, 90.02), (89.77, 90.03), (91.44, 91.69), (93.96, 94.15)),
    "gpushare60": ((82.81, 83.65), (86.82, 87.11), (86.90, 87.20), (87.15, 87.45), (89.06, 89.36), (91.25, 91.40)),
    "gpushare80": ((80.62, 81.22), (84.14, 84.49), (84.50, 84.85), (84.65, 85.00), (86.66, 87.01), (89.08, 89.30)),
    "gpuspec10": ((86.26, 87.43), (90.17, 90.39), (91.96, 92.18), (92.24, 92.46), (93.10, 93.30), (94.66, 94.95)),
    "gpuspec20": ((85.90, 87.24), (88.29, 89.97), (89.11, 92.25), (89.28, 92.94), (88.46, 93.30), (94.66, 94.84)),
    "gpuspec25": ((85.42, 86.94), (85.44, 89.63), (86.41, 92.08), (86.77, 92.98), (85.67, 93.23), (93.91, 94.74)),
    "gpuspec33": ((83.87, 86.46), (79.82, 89.14), (81.09, 92.12), (82.22, 93.22), (80.39, 93.09), (87.84, 94.55)),
    "multigpu20": ((86.92, 88.69), (91.85, 92.06), (93.34, 93.56), (93.50, 93.71), (93.73, 93.93), (95.53, 95.65)),
    "multigpu30": ((86.63, 89.27), (93.11, 93.28), (94.55, 94.72), (94.70, 94.87), (94.57, 94.72), (96.36, 96.46)),
    "multigpu40": ((85.38, 90.09), (94.04, 94.19), (95.35, 95.50), (95.59, 95.74), (95.10, 95.23), (96.91, 96.99)),
    "multigpu50": ((81.28, 90.27), (94.73, 94.85), (95.69, 95.81), (96.06, 96.18), (95.62, 95.74), (97.09, 97.18)),
}
# fmt: on


def published(workload: str, policy: str) -> Mapping[int, float]:
    """The published results of a policy, by mark; empty if there are none."""
    if workload not in _BY_WORKLOAD or policy not in POLICIES:
        return {}
    return dict(zip(MARKS, _BY_WORKLOAD[workload][POLICIES.index(policy)], strict=True))
