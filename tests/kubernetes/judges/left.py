"""What the suites still find, with the reason: left.json."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from kubernetes.judges.common import Outcome

FILE = Path(__file__).with_name("left.json")
NEEDS_A_KUBELET = "Needs a real kubelet: containers with logs and exec, or a network of pods."
RACES = "Races"
"""With this, the reason of a spec begins that fails or passes by chance, on kube-apiserver too."""
LEAVES_AT_ONCE = "A pod on a hollow node that is deleted is gone at once, as it has no container that has to stop."
ON_HOLLOW_NODES = (NEEDS_A_KUBELET, LEAVES_AT_ONCE)
"""Why specs that fail on hollow nodes may pass with a real kubelet."""


def read_left() -> dict[str, dict[str, str]]:
    """By suite: the specs that fail, and why."""
    found: dict[str, dict[str, str]] = json.loads(FILE.read_text())
    return found


def differences(outcome: Outcome, left: Mapping[str, str]) -> Iterator[str]:
    """A line for each failure that is not known, and for each known one that passes now."""
    for name, reason in sorted(outcome.failed.items()):
        if name not in left:
            yield f"fails: {name}: {reason}"
    for name in sorted(left.keys() & outcome.passed):
        if not left[name].startswith(RACES):
            yield f"passes now, and is in {FILE.name}: {name}"
