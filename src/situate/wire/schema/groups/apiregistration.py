"""Messages of apiregistration.k8s.io, from the structs of kube-aggregator v0.36.4. See table.py for the notation."""

from typing import Final

TABLE: Final = """
[apiregistration.v1]
string: APIServiceConditionType ConditionStatus
kind APIService: metadata 1 meta.v1.ObjectMeta!; spec 2 APIServiceSpec!; status 3 APIServiceStatus!
APIServiceCondition: type 1 APIServiceConditionType!; status 2 ConditionStatus!; lastTransitionTime 3 Time!; reason 4
    string; message 5 string
APIServiceSpec: service 1 ServiceReference?; group 2 string; version 3 string; insecureSkipTLSVerify 4 bool; caBundle 5
    bytes; groupPriorityMinimum 7 int32!; versionPriority 8 int32!
APIServiceStatus: conditions 1 [APIServiceCondition] by type
ServiceReference: namespace 1 string; name 2 string; port 3 int32?
"""
