"""The scheduling queue: active, in backoff, unschedulable or gated pods; and the events that wake them."""
