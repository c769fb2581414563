"""The pods that wait: ready, resting, parked or gated; and what wakes them."""
