"""Amounts of resources by name, and how those of one pod's containers combine."""

from collections.abc import Iterable

Amounts = dict[str, int]

# The requests of one container, and whether it is a sidecar (among init containers only).
Asked = tuple[Amounts, bool]


def combined(containers: Iterable[Asked], inits: Iterable[Asked]) -> Amounts:
    """The peak requests of a pod's containers.

    Containers and sidecars run together, so those add up; init containers run one after the other, each beside the
    sidecars started before it, so the largest of those counts.
    """
    running: Amounts = {}
    for amounts, _ in containers:
        add(running, amounts)
    sidecars: Amounts = {}
    starting: Amounts = {}
    for amounts, is_sidecar in inits:
        if is_sidecar:
            add(running, amounts)
            add(sidecars, amounts)
            raise_to(starting, sidecars)
        else:
            beside = dict(sidecars)
            add(beside, amounts)
            raise_to(starting, beside)
    raise_to(running, starting)
    return running


def add(total: Amounts, more: Amounts) -> None:
    """Add to `total` in place."""
    for name, amount in more.items():
        total[name] = total.get(name, 0) + amount


def raise_to(total: Amounts, floor: Amounts) -> None:
    """Raise `total` in place to at least `floor`."""
    for name, amount in floor.items():
        if name not in total or amount > total[name]:
            total[name] = amount
