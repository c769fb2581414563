"""Preemption: which pods to evict, and from which node, when a pod fits nowhere. It decides; it carries nothing out."""

from situate.core.preempt.fit_failure import FitFailureFinder
from situate.core.preempt.nominated import NominatedPods
from situate.core.preempt.options import PreemptionOptions
from situate.core.preempt.post_filter import post_filter
from situate.core.preempt.post_filter_result import PostFilterResult
from situate.core.preempt.preemption import preempt

__all__ = [
    "FitFailureFinder",
    "NominatedPods",
    "PostFilterResult",
    "PreemptionOptions",
    "post_filter",
    "preempt",
]
