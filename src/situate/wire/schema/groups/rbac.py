"""Messages of rbac.authorization.k8s.io, read from the structs of k8s.io/api v0.36.4. See table.py for the notation."""

from typing import Final

TABLE: Final = """
[rbac.v1]
AggregationRule: clusterRoleSelectors 1 [meta.v1.LabelSelector]
kind ClusterRole: metadata 1 meta.v1.ObjectMeta!; rules 2 [PolicyRule]!~; aggregationRule 3 AggregationRule?
kind ClusterRoleBinding: metadata 1 meta.v1.ObjectMeta!; subjects 2 [Subject]; roleRef 3 RoleRef!* atomic
PolicyRule: verbs 1 [string]!; apiGroups 2 [string]; resources 3 [string]; resourceNames 4 [string]; nonResourceURLs 5
    [string]
kind Role: metadata 1 meta.v1.ObjectMeta!; rules 2 [PolicyRule]!~
kind RoleBinding: metadata 1 meta.v1.ObjectMeta!; subjects 2 [Subject]; roleRef 3 RoleRef!* atomic
RoleRef: apiGroup 1 string!~; kind 2 string!; name 3 string!
Subject: kind 1 string!; apiGroup 2 string; name 3 string!; namespace 4 string
"""
