"""Nodes that come, fall silent and go, and the pods that were on them. As everywhere in `reconcile`: objects and the
time in, effects out. What is stored does not tell when it was seen; that is in `sightings`, which whoever runs these
controllers keeps and may lose: one that begins anew has seen everybody just now, and so harms nobody for a while.

    fencing     who waits how long, and why no pod runs twice; the profiles
    sightings   when each node was last heard of, by our own clock
    taints      what a node's conditions make it repel
    health      one node: it fell silent, it is back
    zones       all nodes: how fast those that are lost may be given up
    evicting    one pod: its node is lost, tainted, or gone
    leftovers   pods that ended long ago, leases of nodes that are gone
"""
