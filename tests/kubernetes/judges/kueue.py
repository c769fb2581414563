"""Kueue: its definitions, webhooks and manager installed, jobs admitted; and its own performance test."""

from __future__ import annotations

from collections.abc import Sequence

from kubernetes.judges.common import Outcome, copy_module
from kubernetes.judges.kueue_install import install
from kubernetes.judges.kueue_performance import performance

MODULE = "sigs.k8s.io/kueue"
VERSION = "v0.19.2"
CONFIGS = ("baseline",)


def kueue(only: Sequence[str] = ()) -> Outcome:
    """`only`: parts of the names of what is run."""
    source, outcome = copy_module(MODULE, VERSION), Outcome()
    if not only or any(part in "install" for part in only):
        outcome.add(install(source))
    for config in CONFIGS:
        if not only or any(part in f"performance {config}" for part in only):
            outcome.add(performance(source, config))
    return outcome
