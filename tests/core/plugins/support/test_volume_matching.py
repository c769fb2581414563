"""Which volume each claim gets: all nodes at once against Kubernetes' rules, applied to one node after another."""

from dataclasses import dataclass

from hypothesis import given, settings
from hypothesis import strategies as st

from builders import node, selector, term
from situate.core.model.nodeselector import NodeSelectorTerm
from situate.core.plugins.support.volume_matching import unbound_claims
from situate.core.state.view import View
from storage_builders import HOSTNAME, ZONE, capacity, cluster_of, csi_driver, storage_class, volume, waiting

NODES = [("n0", "a"), ("n1", "a"), ("n2", "b")]
GIB = "Gi"


@dataclass(frozen=True)
class Free:
    """A volume: its size is its own, so that there is one smallest."""

    place: tuple[str, str] | None
    size: int
    class_name: str
    made_for: str
    fast: bool


@dataclass(frozen=True)
class Wanted:
    size: int
    class_name: str
    fast: bool
    selected: str


CLASSES = ("static", "dynamic", "zoned", "full")
frees = st.lists(
    st.builds(
        Free,
        place=st.sampled_from((None, (ZONE, "a"), (ZONE, "b"), (HOSTNAME, "n0"), (HOSTNAME, "n1"))),
        size=st.integers(1, 9),
        class_name=st.sampled_from(CLASSES[:2]),
        made_for=st.sampled_from(("", "", "", "c0", "c1")),
        fast=st.booleans(),
    ),
    max_size=6,
    unique_by=(lambda free: free.size, lambda free: free.made_for or free.size),
)
wants = st.lists(
    st.builds(
        Wanted,
        size=st.integers(1, 6),
        class_name=st.sampled_from(CLASSES),
        fast=st.booleans(),
        selected=st.sampled_from(("", "", "", "n0", "n2")),
    ),
    min_size=1,
    max_size=3,
)
spaces = st.lists(st.tuples(st.sampled_from(("a", "b")), st.integers(1, 6)), max_size=2)


def one_node(
    name: str, zone: str, free: list[Free], wanted: list[Wanted], space: list[tuple[str, int]]
) -> tuple[str, dict[str, int], list[str]]:
    """What is wrong with a node; the size of the volume each claim gets; and the claims that volumes are made for."""
    labels = {ZONE: zone, HOSTNAME: name}
    named = [(f"c{at}", claim) for at, claim in enumerate(wanted)]
    if any(claim.selected not in ("", name) for _, claim in named):
        return "unmatched", {}, []
    to_make = [(key, claim) for key, claim in named if claim.selected]
    taken: dict[str, int] = {}
    for key, claim in sorted(((k, c) for k, c in named if not c.selected), key=lambda pair: pair[1].size):
        fit = [
            each
            for each in sorted(free, key=lambda each: each.size)
            if each.size not in taken.values() and each.class_name == claim.class_name and each.size >= claim.size
        ]
        made = [each for each in fit if each.made_for == key]
        open_to_all = [each for each in fit if not each.made_for and (each.fast or not claim.fast)]
        reachable = [
            each for each in made or open_to_all if each.place is None or labels[each.place[0]] == each.place[1]
        ]
        if reachable:
            taken[key] = reachable[0].size
        else:
            to_make.append((key, claim))
    for _, claim in to_make:
        if claim.class_name == "static" or (claim.class_name == "zoned" and zone != "a"):
            return "unmatched", taken, []
        if claim.class_name == "full" and not any(where == zone and size >= claim.size for where, size in space):
            return "no space", taken, []
    return "", taken, [key for key, _ in to_make]


def reach(place: tuple[str, str] | None) -> tuple[NodeSelectorTerm, ...] | None:
    return None if place is None else (term((place[0], "In", (place[1],))),)


@settings(max_examples=150)
@given(frees, wants, spaces)
def test_every_node_is_answered_as_if_it_were_alone(
    free: list[Free], wanted: list[Wanted], space: list[tuple[str, int]]
) -> None:
    cluster = cluster_of(
        *(node(name, labels={ZONE: zone, HOSTNAME: name}) for name, zone in NODES),
        csi_driver("telling"),
        storage_class("static", provisioner="kubernetes.io/no-provisioner"),
        storage_class("dynamic"),
        storage_class("zoned", topologies=({ZONE: ("a",)},)),
        storage_class("full", provisioner="telling"),
        *(
            capacity(f"s{at}", "full", selector(**{ZONE: zone}), f"{size}{GIB}")
            for at, (zone, size) in enumerate(space)
        ),
    )
    for each in free:
        cluster.put_object(
            volume(
                f"v{each.size}",
                class_name=each.class_name,
                capacity=f"{each.size}{GIB}",
                terms=reach(each.place),
                claim_ref=("default", each.made_for) if each.made_for else (),
                labels={"speed": "fast"} if each.fast else {},
            )
        )
    claims = [
        waiting(
            f"c{at}",
            claim.class_name,
            size=f"{claim.size}{GIB}",
            selector=selector(speed="fast") if claim.fast else None,
            selected_node=claim.selected,
        )
        for at, claim in enumerate(wanted)
    ]
    found = unbound_claims(claims, View(cluster))
    for row, (name, zone) in enumerate(NODES):
        problem, taken, made = one_node(name, zone, free, wanted, space)
        assert ("unmatched" if found.unmatched[row] else "no space" if found.no_space[row] else "") == problem
        if not problem:
            assert {c.metadata.name: v.metadata.name for c, v in found.matches_at(row)} == {
                key: f"v{size}" for key, size in taken.items()
            }
            assert [claim.metadata.name for claim in found.provisions_at(row)] == made
