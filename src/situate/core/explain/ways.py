"""A way to make a pod fit: the steps to take, in words, and what there would be after them. Knows no plugin."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, unique
from typing import Any

from situate.core.model.node import Node
from situate.core.model.pod import Pod


@unique
class StepKind(Enum):
    """What a step changes."""

    UNGATE = "remove gates"
    ASK_LESS = "ask for less"
    TOLERATE = "tolerate"
    DROP_SELECTOR = "drop a node selector"
    DROP_NODE_AFFINITY = "drop the required node affinity"
    LABEL_NODE = "label a node"
    UNCORDON = "uncordon a node"
    FREE_PORT = "give up a host port"
    RAISE_SKEW = "raise maxSkew"
    SOFTEN_SPREAD = "prefer to spread"
    DROP_POD_TERM = "drop a pod affinity term"
    RAISE_LIMIT = "raise the latency limit"
    EVICT = "evict a pod"
    ADD_NODE = "add a node"


@dataclass(frozen=True, slots=True)
class Step:
    kind: StepKind
    text: str
    subject: str
    """The object to change: `Pod default/web`, `Node n1`."""
    field: str = ""
    """Which field of it."""
    value: Any = None
    """What the field should be, or what is to be added to it."""


@dataclass(frozen=True, slots=True)
class Draft:
    """A way that is being put together for one node."""

    pod: Pod
    node: Node
    steps: tuple[Step, ...] = ()
    evicted: tuple[str, ...] = ()

    @property
    def kinds(self) -> tuple[StepKind, ...]:
        return tuple(step.kind for step in self.steps)


@dataclass(frozen=True, slots=True)
class Way:
    """All steps together make the pod fit: it was tried."""

    steps: tuple[Step, ...]
    pod: Pod
    """The pod as it would be."""
    nodes: Mapping[str, Node] = field(default_factory=dict)
    """The nodes that would be new or other than they are, by name."""
    evicted: tuple[str, ...] = ()
    """The pods that would be gone, by namespace/name."""
    fits: tuple[str, ...] = ()
    """Some of the nodes that the pod would then fit."""
    fit_count: int = 0

    @property
    def text(self) -> str:
        return ", and ".join(step.text for step in self.steps)
