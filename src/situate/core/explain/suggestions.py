"""A suggestion: actions that make a pod fit, and the cluster after them. Knows no plugin."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, unique
from typing import Any

from situate.core.model.devices import ResourceSlice
from situate.core.model.node import Node
from situate.core.model.pod import Pod
from situate.core.plugins.support.claim_changes import ClaimChange


@unique
class ActionKind(Enum):
    """What an action changes."""

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
    DROP_DEVICE_SELECTOR = "drop a selector of devices"
    OTHER_DEVICE_CLASS = "ask for another device class"
    TOLERATE_DEVICE = "tolerate a taint of devices"
    FEWER_DEVICES = "ask for fewer devices"
    LESS_CAPACITY = "ask for less of a device"
    DROP_DEVICE_CONSTRAINT = "drop a constraint on devices"
    GIVE_BACK = "give devices back"
    MAKE_CLAIMS = "make claims"
    EVICT = "evict a pod"
    ADD_NODE = "add a node"


@dataclass(frozen=True, slots=True)
class Action:
    kind: ActionKind
    text: str
    subject: str
    """The object to change: `Pod default/web`, `Node n1`."""
    field: str = ""
    """The field to change."""
    value: Any = None
    """The new value of the field, or the value to add."""


@dataclass(frozen=True, slots=True)
class SuggestionDraft:
    """A suggestion under construction for one node."""

    pod: Pod
    node: Node
    actions: tuple[Action, ...] = ()
    evicted: tuple[str, ...] = ()
    claims: tuple[ClaimChange, ...] = ()

    @property
    def kinds(self) -> tuple[ActionKind, ...]:
        return tuple(action.kind for action in self.actions)


@dataclass(frozen=True, slots=True)
class Suggestion:
    """Actions that together make the pod fit; this was tried."""

    actions: tuple[Action, ...]
    pod: Pod
    """The changed pod."""
    nodes: Mapping[str, Node] = field(default_factory=dict)
    """New and changed nodes, by name."""
    evicted: tuple[str, ...] = ()
    """The evicted pods, by namespace/name. They give their devices back."""
    claims: tuple[ClaimChange, ...] = ()
    """Claims for devices before and after, in order."""
    slices: tuple[ResourceSlice, ...] = ()
    """The devices of new nodes."""
    fits: tuple[str, ...] = ()
    """Some of the nodes that the pod would then fit."""
    fit_count: int = 0

    @property
    def text(self) -> str:
        return ", and ".join(action.text for action in self.actions)
