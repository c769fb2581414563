"""What pods and nodes use, and the HorizontalPodAutoscalers that depend on it.

played        pure: what the pods of hollow nodes use, as their annotation says
measured      PodMetrics and NodeMetrics, computed for each request
autoscaler    reads an autoscaler's workload and metrics, and scales it; the leader runs it
statuses      pure: the conditions and the metrics in an autoscaler's status
"""
