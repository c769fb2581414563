"""Finds the details behind a plugin's verdict. A plugin that is not listed here has only its reason."""

from __future__ import annotations

import numpy as np

from situate.core.explain.detail import DETAILS, VerdictDetail
from situate.core.explain.device_details import device_details
from situate.core.explain.latency_details import latency_details
from situate.core.explain.node_details import affinity_details as node_details
from situate.core.explain.node_details import taint_details
from situate.core.explain.pod_details import affinity_details, port_details, spread_details
from situate.core.explain.resource_details import room_details
from situate.core.explain.verdicts import PluginVerdict
from situate.core.place.profile import Profile
from situate.core.plugins.node_resources_fit import NodeResourcesFit
from situate.core.state.classes import PodClass
from situate.core.state.columns import Mask
from situate.core.state.view import View


def details_of(
    profile: Profile, pod: PodClass, view: View, verdict: PluginVerdict, rows: Mask
) -> tuple[VerdictDetail, ...]:
    """The details of a verdict on some of its rows."""
    where = np.flatnonzero(verdict.rows & rows)
    if not len(where):
        return ()
    found: list[VerdictDetail] = []
    match verdict.plugin:
        case "NodeResourcesFit":
            for plugin in profile.filters:
                if isinstance(plugin, NodeResourcesFit):
                    found = room_details(plugin, pod, view, where, verdict.text)
        case "TaintToleration":
            found = taint_details(pod, view, where)
        case "NodeAffinity":
            found = node_details(pod, view, where)
        case "PodTopologySpread":
            found = spread_details(pod, view, where)
        case "InterPodAffinity":
            found = affinity_details(pod, view, where, verdict.text)
        case "NodePorts":
            found = port_details(pod, view, where)
        case "Latency":
            found = latency_details(profile, pod, view, where)
        case "DynamicResources":
            found = device_details(profile, pod, view, where, verdict.text)
        case _:
            pass
    return tuple(found[:DETAILS])
