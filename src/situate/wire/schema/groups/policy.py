"""Messages of policy, read from the structs of k8s.io/api v0.36.4. See table.py for the notation."""

from typing import Final

TABLE: Final = """
[policy.v1]
enum UnhealthyPodEvictionPolicyType: AlwaysAllow IfHealthyBudget
kind Eviction: metadata 1 meta.v1.ObjectMeta!; deleteOptions 2 meta.v1.DeleteOptions?
kind PodDisruptionBudget: metadata 1 meta.v1.ObjectMeta!; spec 2 PodDisruptionBudgetSpec!; status 3
    PodDisruptionBudgetStatus!
PodDisruptionBudgetSpec: minAvailable 1 IntOrString?; selector 2 meta.v1.LabelSelector? atomic replaced; maxUnavailable
    3 IntOrString?; unhealthyPodEvictionPolicy 4 UnhealthyPodEvictionPolicyType?
PodDisruptionBudgetStatus: observedGeneration 1 int64; disruptedPods 2 {Time}; disruptionsAllowed 3 int32!~ >=0;
    currentHealthy 4 int32!~ >=0; desiredHealthy 5 int32!~ >=0; expectedPods 6 int32!~ >=0; conditions 7
    [meta.v1.Condition] by type
"""
