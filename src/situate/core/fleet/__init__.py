"""Several schedulers on one cluster: the members of the fleet, and the share of pods and nodes of each.

Nothing here is for safety: two members that disagree about the membership may both decide on a pod, and the bind, which
the server guards, lets one of them through. This makes that rare, and makes sure that every pod has an owner.
"""
