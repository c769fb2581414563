"""Messages of admissionregistration.k8s.io, read from the structs of k8s.io/api v0.36.4. See table.py for the
notation."""

from typing import Final

TABLE: Final = """
[admissionregistration.v1]
string: FailurePolicyType MatchPolicyType OperationType ParameterNotFoundActionType PatchType ReinvocationPolicyType
    ScopeType SideEffectClass StatusReason ValidationAction
ApplyConfiguration: expression 1 string
AuditAnnotation: key 1 string!; valueExpression 2 string!
ExpressionWarning: fieldRef 2 string!; warning 3 string!
JSONPatch: expression 1 string
MatchCondition: name 1 string!; expression 2 string!
MatchResources: namespaceSelector 1 meta.v1.LabelSelector? atomic; objectSelector 2 meta.v1.LabelSelector? atomic;
    resourceRules 3 [NamedRuleWithOperations]; excludeResourceRules 4 [NamedRuleWithOperations]; matchPolicy 7
    MatchPolicyType?
kind MutatingAdmissionPolicy: metadata 1 meta.v1.ObjectMeta!; spec 2 MutatingAdmissionPolicySpec!
kind MutatingAdmissionPolicyBinding: metadata 1 meta.v1.ObjectMeta!; spec 2 MutatingAdmissionPolicyBindingSpec!
MutatingAdmissionPolicyBindingSpec: policyName 1 string; paramRef 2 ParamRef? atomic; matchResources 3 MatchResources?
    atomic
MutatingAdmissionPolicySpec: paramKind 1 ParamKind? atomic; matchConstraints 2 MatchResources? atomic; variables 3
    [Variable]; mutations 4 [Mutation]; failurePolicy 5 FailurePolicyType?; matchConditions 6 [MatchCondition] by name;
    reinvocationPolicy 7 ReinvocationPolicyType
MutatingWebhook: name 1 string!; clientConfig 2 WebhookClientConfig!*; rules 3 [RuleWithOperations]; failurePolicy 4
    FailurePolicyType?; matchPolicy 9 MatchPolicyType?; namespaceSelector 5 meta.v1.LabelSelector? atomic;
    objectSelector 11 meta.v1.LabelSelector? atomic; sideEffects 6 SideEffectClass?!*; timeoutSeconds 7 int32?;
    admissionReviewVersions 8 [string]!; reinvocationPolicy 10 ReinvocationPolicyType?; matchConditions 12
    [MatchCondition] by name
kind MutatingWebhookConfiguration: metadata 1 meta.v1.ObjectMeta!; webhooks 2 [MutatingWebhook] by name
Mutation: patchType 2 PatchType!; applyConfiguration 3 ApplyConfiguration?; jsonPatch 4 JSONPatch?
NamedRuleWithOperations: resourceNames 1 [string]; +RuleWithOperations 2
ParamKind: apiVersion 1 string; kind 2 string
ParamRef: name 1 string; namespace 2 string; selector 3 meta.v1.LabelSelector? atomic; parameterNotFoundAction 4
    ParameterNotFoundActionType?
Rule: apiGroups 1 [string]; apiVersions 2 [string]; resources 3 [string]; scope 4 ScopeType?
RuleWithOperations: operations 1 [OperationType]; +Rule 2
ServiceReference: namespace 1 string!; name 2 string!; path 3 string?; port 4 int32?
TypeChecking: expressionWarnings 1 [ExpressionWarning]
kind ValidatingAdmissionPolicy: metadata 1 meta.v1.ObjectMeta!; spec 2 ValidatingAdmissionPolicySpec!; status 3
    ValidatingAdmissionPolicyStatus!
kind ValidatingAdmissionPolicyBinding: metadata 1 meta.v1.ObjectMeta!; spec 2 ValidatingAdmissionPolicyBindingSpec!*
ValidatingAdmissionPolicyBindingSpec: policyName 1 string*; paramRef 2 ParamRef? atomic; matchResources 3
    MatchResources? atomic; validationActions 4 [ValidationAction]* set
ValidatingAdmissionPolicySpec: paramKind 1 ParamKind? atomic; matchConstraints 2 MatchResources? atomic; validations 3
    [Validation]; failurePolicy 4 FailurePolicyType?; auditAnnotations 5 [AuditAnnotation]; matchConditions 6
    [MatchCondition] by name; variables 7 [Variable] by name atomic
ValidatingAdmissionPolicyStatus: observedGeneration 1 int64; typeChecking 2 TypeChecking?; conditions 3
    [meta.v1.Condition] by type replaced
ValidatingWebhook: name 1 string!; clientConfig 2 WebhookClientConfig!*; rules 3 [RuleWithOperations]; failurePolicy 4
    FailurePolicyType?; matchPolicy 9 MatchPolicyType?; namespaceSelector 5 meta.v1.LabelSelector? atomic;
    objectSelector 10 meta.v1.LabelSelector? atomic; sideEffects 6 SideEffectClass?!*; timeoutSeconds 7 int32?;
    admissionReviewVersions 8 [string]!; matchConditions 11 [MatchCondition] by name
kind ValidatingWebhookConfiguration: metadata 1 meta.v1.ObjectMeta!; webhooks 2 [ValidatingWebhook] by name
Validation: expression 1 string!; message 2 string; reason 3 StatusReason?; messageExpression 4 string
Variable: name 1 string!; expression 2 string!
WebhookClientConfig: url 3 string?; service 1 ServiceReference?; caBundle 2 bytes
"""
