"""What is wrong with the arguments of the plugins for GPUs, which are ours."""

from math import isfinite
from typing import Any, Final

from situate.core.config.problems import child, forbidden, index, invalid, required, unsupported
from situate.core.config.types import ForesightArgs, FragmentationArgs, GpuShareArgs, TypicalPod
from situate.core.model.gpu import DEVICE_MILLI, MOST_DEVICES
from situate.core.model.names import qualified_name_problems
from situate.core.model.quantity import QuantityError, parse_quantity

__all__ = ["gpu_problems"]

DEVICE_RULES: Final = ("BestFit", "WorstFit", "FirstFit")
MOST_PODS: Final = 1_000
"""How many typical pods there may be: each is asked about each node."""
MOST_MILLI: Final = 1_000_000
MOST_EXPONENT: Final = 8
MOST_FUTURES: Final = 256
MOST_PODS_PER_DEVICE: Final = 64
"""Each future is played out on each node that changes, for each kind of pod."""
MOST_PERCENT: Final = 10_000


def gpu_problems(path: str, args: ForesightArgs | FragmentationArgs | GpuShareArgs) -> list[str]:
    here = child(path, "resource")
    problems = [invalid(here, args.resource, fault) for fault in qualified_name_problems(args.resource)]
    if isinstance(args, GpuShareArgs):
        if args.device not in DEVICE_RULES:
            problems.append(unsupported(child(path, "device"), args.device, DEVICE_RULES))
        return problems
    if len(args.typical_pods) > MOST_PODS:
        text = f"at most {MOST_PODS} are read"
        problems.append(invalid(child(path, "typicalPods"), len(args.typical_pods), text))
    for i, pod in enumerate(args.typical_pods[:MOST_PODS]):
        problems += _typical(index(child(path, "typicalPods"), i), pod)
    if not 0 <= args.weight_exponent <= MOST_EXPONENT:
        text = f"not in valid range [0, {MOST_EXPONENT}]"
        problems.append(invalid(child(path, "weightExponent"), args.weight_exponent, text))
    ranges = [("packing", args.packing, 0, MOST_MILLI)]
    if isinstance(args, FragmentationArgs):
        ranges.insert(0, ("quantum", args.quantum, 0, MOST_MILLI))
    else:
        ranges += [
            ("futures", args.futures, 1, MOST_FUTURES),
            ("podsPerDevice", args.pods_per_device, 1, MOST_PODS_PER_DEVICE),
            ("now", args.now, 0, MOST_PERCENT),
        ]
    for name, amount, least, most in ranges:
        if not least <= amount <= most:
            problems.append(invalid(child(path, name), amount, f"not in valid range [{least}, {most}]"))
    return problems


def _typical(path: str, pod: TypicalPod) -> list[str]:
    problems = []
    if not (isfinite(pod.weight) and pod.weight > 0):
        problems.append(invalid(child(path, "weight"), pod.weight, "must be greater than 0"))
    for name, amount in (("cpu", pod.cpu), ("memory", pod.memory)):
        if fault := _quantity_fault(amount):
            problems.append(invalid(child(path, name), str(amount), fault))
    if not 0 <= pod.gpu <= MOST_DEVICES:
        problems.append(invalid(child(path, "gpu"), pod.gpu, f"not in valid range [0, {MOST_DEVICES}]"))
    if not 0 <= pod.gpu_milli <= DEVICE_MILLI:
        problems.append(invalid(child(path, "gpuMilli"), pod.gpu_milli, f"not in valid range [0, {DEVICE_MILLI}]"))
    elif pod.gpu_milli and pod.gpu:
        problems.append(forbidden(child(path, "gpuMilli"), "may not be given together with gpu"))
    for key, values in pod.nodes.items():
        here = f"{child(path, 'nodes')}[{key}]"
        problems += [invalid(here, key, fault) for fault in qualified_name_problems(key)]
        if not values:
            problems.append(required(here, "at least one value"))
    return problems


def _quantity_fault(amount: Any) -> str:
    if isinstance(amount, bool) or not isinstance(amount, str | int | float):
        return "must be a quantity"
    try:
        return "must not be negative" if parse_quantity(amount) < 0 else ""
    except QuantityError as error:
        return str(error)
