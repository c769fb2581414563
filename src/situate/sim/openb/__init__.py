"""Alibaba's openb trace: GPU nodes, the pods that arrive, and how much of the GPUs each policy allocates."""
