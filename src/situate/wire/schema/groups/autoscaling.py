"""Messages of autoscaling, read from the structs of k8s.io/api v0.36.4. See table.py for the notation."""

from typing import Final

TABLE: Final = """
[autoscaling.v1]
kind Scale: metadata 1 meta.v1.ObjectMeta!; spec 2 ScaleSpec!; status 3 ScaleStatus!
ScaleSpec: replicas 1 int32
ScaleStatus: replicas 1 int32!; selector 2 string
"""
