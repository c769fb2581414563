"""Controllers as pure functions: from an object, the other objects and the time to effects.

Each controller is one function `(object, objects, now) -> ReconcileResult`. It decides from what is stored, so the same
state gives the same effects, and none once the state is as desired. Controllers do not know each other: a Deployment
writes ReplicaSets, and the ReplicaSet controller acts on those. `table` lists the controllers and which of them a
change concerns.

Queues, retries, clocks, watches and writes are elsewhere. The caller carries the effects out in order and stops at the
first that fails; the next call sees the result.
"""
