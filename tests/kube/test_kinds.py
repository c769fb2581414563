"""What a scheduler lists and watches."""

from typing import Any

import pytest

from situate.core.config.decode import decode
from situate.core.config.defaults import default_configuration, with_defaults
from situate.core.config.types import KubeSchedulerConfiguration
from situate.core.model.policy import PriorityClass
from situate.kube.kinds import ALL_KINDS, PODS, WatchedKind
from situate.kube.needed_kinds import needed_kinds
from situate.wire.objects import KINDS, NAMESAKES

STORAGE = {"persistentvolumes", "persistentvolumeclaims", "storageclasses.storage.k8s.io"}
CSI = {"csinodes.storage.k8s.io", "csidrivers.storage.k8s.io"}
WORKLOADS = {"services", "replicationcontrollers", "replicasets.apps", "statefulsets.apps"}
ALWAYS = {"pods", "nodes", "podgroups.scheduling.k8s.io"}
ALWAYS |= {f"podgroups.scheduling.{domain}" for domain in ("x-k8s.io", "volcano.sh", "run.ai")}
DEVICES = {
    f"{name}.resource.k8s.io" for name in ("deviceclasses", "devicetaintrules", "resourceclaims", "resourceslices")
}
VOLUME_PLUGINS = ("VolumeRestrictions", "NodeVolumeLimits", "VolumeBinding", "VolumeZone")


def configured(*profiles: dict[str, Any]) -> KubeSchedulerConfiguration:
    head = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    return with_defaults(decode({**head, "profiles": list(profiles)}))


def needed(*disabled: str, plugin_config: list[dict[str, Any]] | None = None) -> set[str]:
    plugins = {"multiPoint": {"disabled": [{"name": name} for name in disabled]}}
    config = configured({"plugins": plugins, "pluginConfig": plugin_config or []})
    return {kind.name for kind in needed_kinds(config)}


NOT_WATCHED = (PriorityClass,)
"""Pods carry their priorities themselves."""


def test_every_kind_that_scheduling_reads_can_be_watched_but_these() -> None:
    read = {(group, model) for group, model in KINDS.values() if model not in NOT_WATCHED}
    read |= {(group, model) for (_, group), model in NAMESAKES.items()}
    assert {(kind.group, kind.model) for kind in ALL_KINDS} == read


@pytest.mark.parametrize(
    "name, path",
    [
        ("pods", "/api/v1/pods"),
        ("replicasets.apps", "/apis/apps/v1/replicasets"),
        ("poddisruptionbudgets.policy", "/apis/policy/v1/poddisruptionbudgets"),
        ("podgroups.scheduling.x-k8s.io", "/apis/scheduling.x-k8s.io/v1alpha1/podgroups"),
        ("podgroups.scheduling.volcano.sh", "/apis/scheduling.volcano.sh/v1beta1/podgroups"),
        ("podgroups.scheduling.run.ai", "/apis/scheduling.run.ai/v2alpha2/podgroups"),
    ],
)
def test_a_kind_has_its_path_over_all_namespaces(name: str, path: str) -> None:
    (kind,) = [kind for kind in ALL_KINDS if kind.name == name]
    assert kind.path(kind.versions[0]) == path


def test_pods_that_have_finished_are_left_out_by_the_server() -> None:
    assert PODS.params == {"fieldSelector": "status.phase!=Succeeded,status.phase!=Failed"}
    assert all(kind.params == {} for kind in ALL_KINDS if kind is not PODS)


def test_the_default_configuration_needs_everything() -> None:
    assert needed_kinds(default_configuration()) == ALL_KINDS


@pytest.mark.parametrize(
    "disabled, not_needed",
    [
        (("DefaultPreemption",), {"poddisruptionbudgets.policy"}),
        (("InterPodAffinity",), {"namespaces"}),
        (("PodTopologySpread",), WORKLOADS),
        (("NodeVolumeLimits",), {"volumeattachments.storage.k8s.io"}),
        (("VolumeBinding",), {"csistoragecapacities.storage.k8s.io"}),
        (("VolumeZone",), set()),
        (("DynamicResources",), DEVICES),
        (VOLUME_PLUGINS, STORAGE | CSI | {"csistoragecapacities.storage.k8s.io", "volumeattachments.storage.k8s.io"}),
        (("VolumeBinding", "NodeVolumeLimits", "VolumeZone"), CSI | (STORAGE - {"persistentvolumeclaims"})
         | {"csistoragecapacities.storage.k8s.io", "volumeattachments.storage.k8s.io"}),
    ],
    ids=lambda value: ", ".join(value) if isinstance(value, tuple) else "",
)  # fmt: skip
def test_what_no_enabled_plugin_reads_is_not_needed(disabled: tuple[str, ...], not_needed: set[str]) -> None:
    everything = {kind.name for kind in ALL_KINDS}
    assert needed(*disabled) == everything - not_needed


def test_with_every_plugin_off_nodes_pods_and_groups_are_left() -> None:
    others = ("DefaultPreemption", "DynamicResources", "InterPodAffinity", "PodTopologySpread")
    assert needed(*others, *VOLUME_PLUGINS) == ALWAYS


def test_spreading_without_defaults_does_not_ask_whose_the_pods_are() -> None:
    args = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "PodTopologySpreadArgs", "defaultingType": "List"}
    assert not needed(plugin_config=[{"name": "PodTopologySpread", "args": args}]) & WORKLOADS


def test_a_plugin_of_others_may_read_anything() -> None:
    plugins = {
        "multiPoint": {"disabled": [{"name": "*"}], "enabled": [{"name": "DefaultBinder"}, {"name": "PrioritySort"}]},
        "filter": {"enabled": [{"name": "mine:Own"}]},
    }
    known = {"mine:Own": frozenset({"filter"})}
    assert needed_kinds(configured({"plugins": plugins}), known) == ALL_KINDS


def test_a_kind_is_needed_if_any_profile_needs_it() -> None:
    bare = {"multiPoint": {"disabled": [{"name": "InterPodAffinity"}]}}
    config = configured({"schedulerName": "a", "plugins": bare}, {"schedulerName": "b"})
    assert "namespaces" in {kind.name for kind in needed_kinds(config)}


def test_kinds_are_in_an_order_in_which_pods_are_last() -> None:
    kinds: tuple[WatchedKind, ...] = needed_kinds(default_configuration())
    assert kinds[-1] is PODS
