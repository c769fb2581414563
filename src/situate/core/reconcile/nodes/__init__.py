"""Node lifecycle: nodes that come, go silent and go, and the pods on them. What is stored does not show when it was
seen; `heartbeats` does. The caller keeps it and may lose it: after a restart every node counts as just heard from, so
that no node is harmed for a while.

    fencing     how long agents and controllers wait, so that no pod runs twice; the profiles
    heartbeats  when each node was last heard from, by our own clock
    taints      the taints of a node's conditions
    health      one node: it went silent, or is back
    zones       all nodes: how fast lost nodes may be tainted NoExecute
    eviction    one pod: its node is lost, tainted, or gone
    cleanup     old finished pods, leases of deleted nodes
    reports     which report of an agent is the newest
"""
