"""Messages of networking.k8s.io, read from the structs of k8s.io/api v0.36.4. See table.py for the notation."""

from typing import Final

TABLE: Final = """
[networking.v1]
enum PathType: Exact ImplementationSpecific Prefix
enum PolicyType: Egress Ingress
HTTPIngressPath: path 1 string; pathType 3 PathType?!*; backend 2 IngressBackend!*
HTTPIngressRuleValue: paths 1 [HTTPIngressPath]!
kind IPAddress: metadata 1 meta.v1.ObjectMeta!; spec 2 IPAddressSpec!*
IPAddressSpec: parentRef 1 ParentReference?*
IPBlock: cidr 1 string!; except 2 [string]
kind Ingress: metadata 1 meta.v1.ObjectMeta!; spec 2 IngressSpec!; status 3 IngressStatus!
IngressBackend: service 4 IngressServiceBackend?; resource 3 core.v1.TypedLocalObjectReference? atomic
kind IngressClass: metadata 1 meta.v1.ObjectMeta!; spec 2 IngressClassSpec!
IngressClassParametersReference: apiGroup 1 string?; kind 2 string!; name 3 string!; scope 4 string?!~; namespace 5
    string?
IngressClassSpec: controller 1 string; parameters 2 IngressClassParametersReference?
IngressLoadBalancerIngress: ip 1 string; hostname 2 string; ports 4 [IngressPortStatus]
IngressLoadBalancerStatus: ingress 1 [IngressLoadBalancerIngress]
IngressPortStatus: port 1 int32!; protocol 2 core.v1.Protocol!; error 3 string?
IngressRule: host 1 string; +IngressRuleValue 2
IngressRuleValue: http 1 HTTPIngressRuleValue?
IngressServiceBackend: name 1 string!; port 2 ServiceBackendPort! atomic
IngressSpec: ingressClassName 4 string?; defaultBackend 1 IngressBackend?; tls 2 [IngressTLS]; rules 3
    [IngressRule]
IngressStatus: loadBalancer 1 IngressLoadBalancerStatus!
IngressTLS: hosts 1 [string]; secretName 2 string
kind NetworkPolicy: metadata 1 meta.v1.ObjectMeta!; spec 2 NetworkPolicySpec!
NetworkPolicyEgressRule: ports 1 [NetworkPolicyPort]; to 2 [NetworkPolicyPeer]
NetworkPolicyIngressRule: ports 1 [NetworkPolicyPort]; from 2 [NetworkPolicyPeer]
NetworkPolicyPeer: podSelector 1 meta.v1.LabelSelector? atomic; namespaceSelector 2 meta.v1.LabelSelector? atomic;
    ipBlock 3 IPBlock?
NetworkPolicyPort: protocol 1 core.v1.Protocol?; port 2 IntOrString?; endPort 3 int32?
NetworkPolicySpec: podSelector 1 meta.v1.LabelSelector! atomic; ingress 2 [NetworkPolicyIngressRule]; egress 3
    [NetworkPolicyEgressRule]; policyTypes 4 [PolicyType]
ParentReference: group 1 string; resource 2 string*; namespace 3 string; name 4 string*
ServiceBackendPort: name 1 string; number 2 int32
kind ServiceCIDR: metadata 1 meta.v1.ObjectMeta!; spec 2 ServiceCIDRSpec!; status 3 ServiceCIDRStatus!
ServiceCIDRSpec: cidrs 1 [string]
ServiceCIDRStatus: conditions 1 [meta.v1.Condition] by type
"""
