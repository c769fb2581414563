"""The real control plane and the real agents in virtual time, in one process, with faults between them.

virtual_time   an event loop with virtual time, and the actors that run on it
control_plane  servers with registry, scheduler and controllers; may be paused, killed and restarted
store_link     what lies between a server and the store
network        what lies between an agent and the control plane
machine        a machine: its containers, its disk, its agent
workload       what users create and change
faults         fault injection, drawn from the seed
checkers       invariants of every world
settled        what must hold after all faults are over
run_log        what happened, and the violations
world          one seed from beginning to end
"""
