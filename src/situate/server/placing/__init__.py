"""Who is where: each node's ledger, guarded binds, evictions, and the record of every decision.

    ledger, eligibility, life     pure: what a node holds, whom it may hold, how a binding lives
    snapshots, decisions          the two kinds of ours, as they are stored
    bind_transaction              what joins the transaction of every write of a pod or node
    binding, eviction             the subresources

Nothing here writes a pod, a NodeSnapshot and a PlacementDecision at different revisions. Nothing here chooses a node.
"""
