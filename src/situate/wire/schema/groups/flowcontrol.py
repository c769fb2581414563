"""Messages of flowcontrol.apiserver.k8s.io, from the structs of k8s.io/api v0.36.4. See table.py for the notation."""

from typing import Final

TABLE: Final = """
[flowcontrol.v1]
string: FlowDistinguisherMethodType FlowSchemaConditionType LimitResponseType
    PriorityLevelConfigurationConditionType PriorityLevelEnablement SubjectKind
ExemptPriorityLevelConfiguration: nominalConcurrencyShares 1 int32?; lendablePercent 2 int32?
FlowDistinguisherMethod: type 1 FlowDistinguisherMethodType!
kind FlowSchema: metadata 1 meta.v1.ObjectMeta!; spec 2 FlowSchemaSpec!; status 3 FlowSchemaStatus!
FlowSchemaCondition: type 1 FlowSchemaConditionType; status 2 core.v1.ConditionStatus; lastTransitionTime 3 Time!;
    reason 4 string; message 5 string
FlowSchemaSpec: priorityLevelConfiguration 1 PriorityLevelConfigurationReference!*; matchingPrecedence 2 int32!~;
    distinguisherMethod 3 FlowDistinguisherMethod?; rules 4 [PolicyRulesWithSubjects]
FlowSchemaStatus: conditions 1 [FlowSchemaCondition] by type?
GroupSubject: name 1 string!
LimitResponse: type 1 LimitResponseType!; queuing 2 QueuingConfiguration?
LimitedPriorityLevelConfiguration: nominalConcurrencyShares 1 int32?; limitResponse 2 LimitResponse!; lendablePercent 3
    int32?; borrowingLimitPercent 4 int32?
NonResourcePolicyRule: verbs 1 [string]! set; nonResourceURLs 6 [string]! set
PolicyRulesWithSubjects: subjects 1 [Subject]!; resourceRules 2 [ResourcePolicyRule]; nonResourceRules 3
    [NonResourcePolicyRule]
kind PriorityLevelConfiguration: metadata 1 meta.v1.ObjectMeta!; spec 2 PriorityLevelConfigurationSpec!; status 3
    PriorityLevelConfigurationStatus!
PriorityLevelConfigurationCondition: type 1 PriorityLevelConfigurationConditionType; status 2 core.v1.ConditionStatus;
    lastTransitionTime 3 Time!; reason 4 string; message 5 string
PriorityLevelConfigurationReference: name 1 string!
PriorityLevelConfigurationSpec: type 1 PriorityLevelEnablement!; limited 2 LimitedPriorityLevelConfiguration?; exempt 3
    ExemptPriorityLevelConfiguration?
PriorityLevelConfigurationStatus: conditions 1 [PriorityLevelConfigurationCondition] by type?
QueuingConfiguration: queues 1 int32!~; handSize 2 int32!~; queueLengthLimit 3 int32!~
ResourcePolicyRule: verbs 1 [string]! set; apiGroups 2 [string]! set; resources 3 [string]! set; clusterScope 4 bool;
    namespaces 5 [string]!~ set
ServiceAccountSubject: namespace 1 string!; name 2 string!
Subject: kind 1 SubjectKind!; user 2 UserSubject?; group 3 GroupSubject?; serviceAccount 4 ServiceAccountSubject?
UserSubject: name 1 string!
"""
