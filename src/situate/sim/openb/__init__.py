"""Alibaba's openb trace: a cluster of GPU nodes, the pods that come to it, and how much of its GPUs policies fill."""
