"""The `typicalPods` argument of the plugins for GPUs: the pods that an operator expects."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import Any, Final

from situate.core.model.base import EMPTY, Int64
from situate.core.model.field_errors import child, forbidden, index, invalid, required
from situate.core.model.gpu import DEVICE_MILLI, GPU_RESOURCE, MOST_DEVICES
from situate.core.model.quantity import QuantityError, milli_value, parse_quantity, value
from situate.core.plugins.support.arguments import ArgModel, PluginArgs, label_name_problems, range_problems
from situate.core.plugins.support.gpu_mix import ExpectedPod

MAX_TYPICAL_PODS: Final = 1_000
"""The plugins evaluate each of them on each node."""
MAX_MILLI: Final = 1_000_000
MAX_EXPONENT: Final = 8


class TypicalPod(ArgModel, frozen=True, kw_only=True):
    """An expected pod and its relative frequency. `nodes`: for each label, the values that its node may have."""

    weight: float = 1.0
    cpu: Any = 0
    memory: Any = 0
    gpu: Int64 = 0
    gpu_milli: Int64 = 0
    nodes: Mapping[str, tuple[str, ...]] = EMPTY

    omit_empty = ("cpu", "memory", "gpu", "gpu_milli", "nodes")

    def validate(self, path: str) -> list[str]:
        problems = []
        if not (isfinite(self.weight) and self.weight > 0):
            problems.append(invalid(child(path, "weight"), self.weight, "must be greater than 0"))
        for name, amount in (("cpu", self.cpu), ("memory", self.memory)):
            if problem := _quantity_problem(amount):
                problems.append(invalid(child(path, name), str(amount), problem))
        problems += range_problems(child(path, "gpu"), self.gpu, 0, MOST_DEVICES)
        shares = range_problems(child(path, "gpuMilli"), self.gpu_milli, 0, DEVICE_MILLI)
        if not shares and self.gpu_milli and self.gpu:
            shares.append(forbidden(child(path, "gpuMilli"), "may not be given together with gpu"))
        problems += shares
        for key, values in self.nodes.items():
            here = f"{child(path, 'nodes')}[{key}]"
            problems += label_name_problems(here, key)
            if not values:
                problems.append(required(here, "at least one value"))
        return problems

    def parse(self) -> ExpectedPod:
        devices, milli = (1, self.gpu_milli) if self.gpu_milli else (self.gpu, DEVICE_MILLI)
        nodes = tuple((key, tuple(values)) for key, values in self.nodes.items())
        return ExpectedPod(self.weight, milli_value(self.cpu), value(self.memory), devices, milli, nodes)


class TypicalPodsArgs(PluginArgs, frozen=True, kw_only=True):
    """Without `typical_pods`, the bound pods are typical."""

    resource: str = GPU_RESOURCE
    typical_pods: tuple[TypicalPod, ...] = ()
    weight_exponent: float = 1.0

    omit_empty = ("typical_pods",)

    def validate(self, path: str) -> list[str]:
        problems = label_name_problems(child(path, "resource"), self.resource)
        here = child(path, "typicalPods")
        if len(self.typical_pods) > MAX_TYPICAL_PODS:
            problems.append(invalid(here, len(self.typical_pods), f"at most {MAX_TYPICAL_PODS} are read"))
        for i, pod in enumerate(self.typical_pods[:MAX_TYPICAL_PODS]):
            problems += pod.validate(index(here, i))
        return problems + range_problems(child(path, "weightExponent"), self.weight_exponent, 0, MAX_EXPONENT)

    @property
    def mix(self) -> tuple[ExpectedPod, ...]:
        """A pod that needs no GPU can use none of what is free, wherever it goes."""
        return tuple(pod.parse() for pod in self.typical_pods if pod.gpu or pod.gpu_milli)


def _quantity_problem(amount: Any) -> str:
    if isinstance(amount, bool) or not isinstance(amount, str | int | float):
        return "must be a quantity"
    try:
        return "must not be negative" if parse_quantity(amount) < 0 else ""
    except QuantityError as error:
        return str(error)
