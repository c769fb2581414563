"""Placement: each node's ledger, checked binds, evictions, and the record of every decision.

    ledger, eligibility, phases   pure: what a node holds, which pods it may hold, the phases of a binding
    snapshots, decisions          our two kinds, as they are stored
    bind_transaction              what is added to the transaction of every write of a pod or node
    reports                       which reports of agents count
    binding, eviction             the subresources

A pod, its node's NodeSnapshot and its PlacementDecision are written at one revision. Nothing here chooses a node.
"""
