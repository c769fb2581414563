"""Messages that all groups share, from the structs of k8s.io/apimachinery v0.36.4. See table.py for the notation."""

from typing import Final

TABLE: Final = """
[meta.v1]
string: ConditionStatus DeletionPropagation FieldSelectorOperator LabelSelectorOperator ManagedFieldsOperationType
Condition: type 1 string!; status 2 ConditionStatus!; observedGeneration 3 int64; lastTransitionTime 4 Time!*; reason 5
    string!; message 6 string!
kind DeleteOptions: gracePeriodSeconds 1 int64?; preconditions 2 Preconditions?; orphanDependents 3 bool?;
    propagationPolicy 4 DeletionPropagation?; dryRun 5 [string]; ignoreStoreReadErrorWithClusterBreakingPotential 6
    bool?
FieldSelectorRequirement: key 1 string!; operator 2 FieldSelectorOperator!; values 3 [string]
LabelSelector: matchLabels 1 {string}; matchExpressions 2 [LabelSelectorRequirement]
LabelSelectorRequirement: key 1 string!; operator 2 LabelSelectorOperator!; values 3 [string]
ManagedFieldsEntry: manager 1 string; operation 2 ManagedFieldsOperationType; apiVersion 3 string; time 4 Time?;
    fieldsType 6 string; fieldsV1 7 Free? atomic; subresource 8 string
ObjectMeta: name 1 string; generateName 2 string; namespace 3 string; selfLink 4 string; uid 5 types.UID;
    resourceVersion 6 string; generation 7 int64; creationTimestamp 8 Time; deletionTimestamp 9 Time?;
    deletionGracePeriodSeconds 10 int64?; labels 11 {string}; annotations 12 {string}; ownerReferences 13
    [OwnerReference] by uid atomic; finalizers 14 [string] set merged; managedFields 17 [ManagedFieldsEntry]
OwnerReference: apiVersion 5 string!; kind 1 string!; name 3 string!; uid 4 types.UID!; controller 6 bool?;
    blockOwnerDeletion 7 bool?
Preconditions: uid 1 types.UID?; resourceVersion 2 string?
[types]
string: UID
"""
