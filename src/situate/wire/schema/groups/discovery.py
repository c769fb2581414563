"""Messages of discovery.k8s.io, read from the structs of k8s.io/api v0.36.4. See table.py for the notation."""

from typing import Final

TABLE: Final = """
[discovery.v1]
enum AddressType: FQDN IPv4 IPv6
Endpoint: addresses 1 [string]! set; conditions 2 EndpointConditions!; hostname 3 string?; targetRef 4
    core.v1.ObjectReference? atomic; deprecatedTopology 5 {string}; nodeName 6 string?; zone 7 string?; hints 8
    EndpointHints?
EndpointConditions: ready 1 bool?; serving 2 bool?; terminating 3 bool?
EndpointHints: forZones 1 [ForZone]; forNodes 2 [ForNode]
EndpointPort: name 1 string?; protocol 2 core.v1.Protocol? nonempty; port 3 int32?; appProtocol 4 string?
kind EndpointSlice: metadata 1 meta.v1.ObjectMeta!; addressType 4 AddressType! nonempty; endpoints 2 [Endpoint]!~; ports
    3 [EndpointPort]!~
ForNode: name 1 string!
ForZone: name 1 string!
"""
