"""Carried terms: who is heard, how many bytes of counts are held, and how readers notice that theirs are old."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from situate.core.model.node import Node
from situate.core.model.pod import Pod
from situate.core.state import terms
from situate.core.state.audit import audit
from situate.core.state.classes import TermKind
from situate.core.state.cluster import Cluster
from situate.core.state.topology_counts import carried_terms
from situate.core.state.view import View

REQUIRED, PREFERRED = (
    "requiredDuringSchedulingIgnoredDuringExecution",
    "preferredDuringSchedulingIgnoredDuringExecution",
)


def pod(name: str, node: str = "", wants: str = "web", app: str = "web") -> Pod:
    """A pod with one required and one preferred anti-affinity term."""
    term: dict[str, Any] = {"topologyKey": "host", "labelSelector": {"matchLabels": {"app": wants}}}
    apart = {REQUIRED: [term], PREFERRED: [{"weight": 3, "podAffinityTerm": term}]}
    spec = {"nodeName": node, "affinity": {"podAntiAffinity": apart}, "containers": [{"name": "c"}]}
    return msgspec.convert({"metadata": {"name": name, "labels": {"app": app}}, "spec": spec}, Pod)


def cluster(*pods: Pod) -> Cluster:
    made = Cluster()
    for name in ("a", "b"):
        made.add_node(msgspec.convert({"metadata": {"name": name, "labels": {"host": name}}}, Node))
    for one in pods:
        made.add_pod(one)
    return made


def heard(made: Cluster, waiting: Pod, *kinds: TermKind) -> list[tuple[TermKind, list[int]]]:
    return [
        (entry.term.kind, counts.tolist())
        for entry, counts in carried_terms(View(made), made.class_of(waiting), *kinds)
    ]


def test_terms_of_the_kinds_asked_for_are_heard_by_whom_they_speak_of() -> None:
    made = cluster(pod("one", "a"), pod("two", "a"), pod("three", "b", wants="db"))
    hard, soft = TermKind.REQUIRED_ANTI_AFFINITY, TermKind.PREFERRED_ANTI_AFFINITY
    assert heard(made, pod("new"), hard) == [(hard, [2, 0, 0])]
    assert heard(made, pod("new"), soft, hard) == [(soft, [2, 0, 0]), (hard, [2, 0, 0])]
    assert heard(made, pod("new", app="db"), hard) == [(hard, [0, 1, 0])]
    assert heard(made, pod("new"), TermKind.REQUIRED_AFFINITY) == []


def test_counts_are_let_go_beyond_the_limit_and_counted_again_when_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(terms, "COUNTED_BYTES", 3 * 8)  # one term by host: two domains and a slot for no label
    made = cluster(pod("one", "a"), pod("three", "b", wants="db"))
    hard = TermKind.REQUIRED_ANTI_AFFINITY
    for _ in range(2):
        assert heard(made, pod("new"), hard) == [(hard, [1, 0, 0])]
        assert heard(made, pod("new", app="db"), hard) == [(hard, [0, 1, 0])]
    assert sum(entry.counts is not None for entry in made.terms.values()) == 1
    assert audit(made) == []


def test_a_carrier_that_comes_moves_the_version_even_where_counts_were_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(terms, "COUNTED_BYTES", 0)
    made = cluster(pod("one", "a"))
    view = View(made)
    carried_terms(view, made.class_of(pod("new")), *TermKind)
    read = [(entry, entry.version) for entry in view.tallies_read]
    assert len(read) == 2
    made.add_pod(pod("two", "b"))
    assert all(entry.version != version for entry, version in read)
