"""Runs the controllers of core/reconcile: what they read is kept here, whom a change concerns is called, and a port has
their effects carried out, by HTTP or in the same process."""
