"""Messages of metrics.k8s.io, read from the structs of k8s.io/metrics v0.36.4, without their numbers in protobuf. See
table.py for the notation."""

from typing import Final

TABLE: Final = """
[metrics.v1beta1]
kind NodeMetrics: metadata - meta.v1.ObjectMeta!; timestamp - Time!; window - string!; usage - core.v1.ResourceList!
kind PodMetrics: metadata - meta.v1.ObjectMeta!; timestamp - Time!; window - string!; containers - [ContainerMetrics]!
ContainerMetrics: name - string!; usage - core.v1.ResourceList!
"""
