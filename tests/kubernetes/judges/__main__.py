"""Runs the suites that are named, or all, and prints a table.

left.json says what is left, and why. A failure that is not in it, or an entry that passes now, is exit code 1.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence

from kubernetes.judges.common import BUILD, Outcome
from kubernetes.judges.conformance import conformance
from kubernetes.judges.conformance_kubelet import conformance_kubelet
from kubernetes.judges.controller_runtime import CONTROLLER_RUNTIME
from kubernetes.judges.kubectl import kubectl
from kubernetes.judges.kueue import kueue
from kubernetes.judges.left import differences, read_left
from kubernetes.judges.operators import JOBSET, LWS

SUITES: dict[str, Callable[[Sequence[str]], Outcome]] = {
    "conformance": conformance,
    "conformance-kubelet": conformance_kubelet,
    "kubectl": kubectl,
    "controller-runtime": CONTROLLER_RUNTIME.run,
    "jobset": JOBSET.run,
    "lws": LWS.run,
    "kueue": kueue,
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--suite", action="append", choices=SUITES, help="only this one (repeatable)")
    parser.add_argument(
        "--only", action="append", default=[], help="only packages, groups or specs with this text in their names"
    )
    given = parser.parse_args()
    outcomes: dict[str, Outcome] = {}
    for name in given.suite or SUITES:
        print(f"{name}:", flush=True)
        outcomes[name] = SUITES[name](given.only)
        outcomes[name].write(BUILD / f"{name}.json")
    print(f"\n{'suite':<20} {'passed':>8} {'failed':>8} {'skipped':>8}")
    left, wrong = read_left(), 0
    for name, outcome in outcomes.items():
        print(f"{name:<20} {len(outcome.passed):>8} {len(outcome.failed):>8} {len(outcome.skipped):>8}")
        for line in differences(outcome, left.get(name, {})):
            wrong += 1
            print(f"  {line}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
