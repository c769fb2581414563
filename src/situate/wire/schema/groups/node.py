"""Messages of node.k8s.io, read from the structs of k8s.io/api v0.36.4. See table.py for the notation."""

from typing import Final

TABLE: Final = """
[node.v1]
Overhead: podFixed 1 core.v1.ResourceList
kind RuntimeClass: metadata 1 meta.v1.ObjectMeta!; handler 2 string!; overhead 3 Overhead?; scheduling 4 Scheduling?
Scheduling: nodeSelector 1 {string} atomic; tolerations 2 [core.v1.Toleration]
"""
