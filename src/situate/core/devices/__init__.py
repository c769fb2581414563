"""Dynamic resource allocation: which devices a node can give, and to whom. Pure functions of objects; no cluster here.

`inventory` groups slices into the pools of a node, `allocated` knows what is in use, `allocator` searches a solution
for the claims of a pod as kube-scheduler does, `results` writes it down.
"""
