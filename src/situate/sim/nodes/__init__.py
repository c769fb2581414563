"""The data plane in virtual time: the control plane and the agents as they are, in one process, with faults between.

virtual    an event loop whose time jumps, and who of the world runs on it
plant      the control plane: store, registry, scheduler, controllers; it is paused, killed and begun again
network    what lies between an agent and the control plane
machine    a machine: its containers, its disk, its agent
workload   what people ask for
faults     what goes wrong, drawn from the seed
checkers   what must hold
settled    what must hold when all faults are over
world      one seed, from its beginning to its end
"""
