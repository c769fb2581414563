"""Preemption: whom to evict, and from which node, when a pod fits nowhere. It decides; it evicts nobody."""

from situate.core.preempt.options import PreemptionOptions
from situate.core.preempt.post_filter import post_filter
from situate.core.preempt.preempting import preempt
from situate.core.preempt.promised import Promised
from situate.core.preempt.remedies import Remedies
from situate.core.preempt.remedy import Remedy

__all__ = ["PreemptionOptions", "Promised", "Remedies", "Remedy", "post_filter", "preempt"]
