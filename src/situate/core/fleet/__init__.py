"""Several schedulers on one cluster: who is there, whose each pod is, and what each of them is told. Pure.

Nothing here is for safety: two members that differ about who is there may both decide on a pod, and the bind, which is
guarded by the server, lets one of them through. It is so that they seldom do, and so that no pod is nobody's.
"""
