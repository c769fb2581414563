"""Controllers as pure functions: an object, what else there is, and the time, to what somebody must now do.

Each controller is one function `(object, objects, now) -> Outcome`. It reads all it decides from what is stored, so the
same state gives the same effects, and none once everything is as it should be. No controller knows another: a
Deployment writes ReplicaSets, and that is all a ReplicaSet hears of it. `table` says which functions there are and
whom a change concerns.

Not here: queues, retries, clocks, watching, writing. Whoever runs these functions performs the effects of a list in
order and stops at the first that is refused; the next call sees what came of it.
"""
