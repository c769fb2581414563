"""Messages of coordination.k8s.io, read from the structs of k8s.io/api v0.36.4. See table.py for the notation."""

from typing import Final

TABLE: Final = """
[coordination.v1]
string: CoordinatedLeaseStrategy
kind Lease: metadata 1 meta.v1.ObjectMeta!; spec 2 LeaseSpec!
LeaseSpec: holderIdentity 1 string?; leaseDurationSeconds 2 int32?; acquireTime 3 MicroTime?; renewTime 4 MicroTime?;
    leaseTransitions 5 int32? >=0; strategy 6 CoordinatedLeaseStrategy?; preferredHolder 7 string?
"""
