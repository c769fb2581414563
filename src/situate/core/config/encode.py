"""Encodes the configuration as plain mappings, with exactly the fields that kube-scheduler would write."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec
import msgspec.inspect as mi

from situate.core.config.types import (
    API_VERSION,
    KIND,
    NOT_IN_FILES,
    POD_GROUP_POST_FILTER,
    Extender,
    ExtenderManagedResource,
    ExtenderTLSConfig,
    KubeSchedulerConfiguration,
    KubeSchedulerProfile,
    PluginSet,
)
from situate.core.model.duration import format_duration
from situate.core.model.labels import LabelSelector, LabelSelectorRequirement
from situate.core.model.latency import PlaceLatencies
from situate.core.model.nodeselector import NodeSelectorRequirement, NodeSelectorTerm
from situate.core.model.pod import NodeAffinitySpec, TopologySpreadConstraint
from situate.core.plugins.support.arguments import ArgModel
from situate.core.plugins.table import ARGS

# Fields of shared structs that are not written while they have their default. None is never written.
_OMIT_EMPTY: Final[Mapping[type[msgspec.Struct], tuple[str, ...]]] = {
    Extender: tuple(name for name in Extender.__struct_fields__ if name not in ("url_prefix", "http_timeout")),
    ExtenderManagedResource: ("ignored_by_scheduler",),
    ExtenderTLSConfig: ExtenderTLSConfig.__struct_fields__,
    KubeSchedulerConfiguration: ("extenders", "delay_cache_until_active"),
    KubeSchedulerProfile: ("plugin_config",),
    LabelSelector: LabelSelector.__struct_fields__,
    LabelSelectorRequirement: ("values",),
    NodeAffinitySpec: NodeAffinitySpec.__struct_fields__,
    NodeSelectorRequirement: ("values",),
    NodeSelectorTerm: NodeSelectorTerm.__struct_fields__,
    PlaceLatencies: PlaceLatencies.__struct_fields__,
    PluginSet: PluginSet.__struct_fields__,
    TopologySpreadConstraint: ("node_affinity_policy", "node_taints_policy", "match_label_keys"),
}
_KINDS: Final = {cls: f"{plugin}Args" for plugin, cls in ARGS.items()} | {KubeSchedulerConfiguration: KIND}


def encode(config: KubeSchedulerConfiguration) -> dict[str, Any]:
    """Keys are sorted, as in the files that kube-scheduler writes."""
    written = _struct(config)
    if not config.rules.pod_group_post_filter:
        for profile in written["profiles"]:
            profile.get("plugins", {}).pop(POD_GROUP_POST_FILTER, None)
    return written


def _struct(value: msgspec.Struct) -> dict[str, Any]:
    cls = type(value)
    omit_empty = value.omit_empty if isinstance(value, ArgModel) else _OMIT_EMPTY.get(cls, ())
    written: dict[str, Any] = {}
    if cls in _KINDS:
        written = {"apiVersion": API_VERSION, "kind": _KINDS[cls]}
    for field in msgspec.structs.fields(cls):
        held = getattr(value, field.name)
        if held is None or (field.name in omit_empty and held == field.default) or field.encode_name in NOT_IN_FILES:
            continue
        written[field.encode_name] = _value(held, _is_duration(field.type))
    return dict(sorted(written.items()))


def _value(held: Any, is_duration: bool) -> Any:
    match held:
        case msgspec.Struct():
            return _struct(held)
        case Mapping():
            return {key: _value(item, is_duration) for key, item in held.items()}
        case tuple():
            return [_value(item, is_duration) for item in held]
        case int() if is_duration:
            return format_duration(held)
        case float() if held.is_integer() and abs(held) < 1e21:
            return int(held)  # equal in JSON, and 50 reads better than 50.0
        case bytes():
            return msgspec.to_builtins(held)
        case _:
            return held


def _is_duration(kind: Any) -> bool:
    return isinstance(mi.type_info(kind), mi.Metadata)
