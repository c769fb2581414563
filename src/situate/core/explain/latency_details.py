"""The latency of nodes to the place that a pod names, and the pod's limit."""

from __future__ import annotations

from situate.core.explain.detail import NAMED, VerdictDetail, detail
from situate.core.place.profile import Profile
from situate.core.plugins.latency import MICROS, UNKNOWN, Latency, LatencyRequest, latency_request
from situate.core.state.classes import PodClass
from situate.core.state.columns import IdColumn, IntColumn
from situate.core.state.view import View


def limited(profile: Profile, pod: PodClass, view: View) -> tuple[LatencyRequest, IntColumn] | None:
    """The annotations of a pod with a limit, and the latency of every node in microseconds; None without a limit."""
    request = latency_request(pod)
    if not isinstance(request, LatencyRequest) or request.limit is None:
        return None
    for plugin in profile.filters:
        if isinstance(plugin, Latency) and request.place in plugin.known(view):
            return request, plugin.micros(request.place, view)
    return None


def latency_details(profile: Profile, pod: PodClass, view: View, rows: IdColumn) -> list[VerdictDetail]:
    found = limited(profile, pod, view)
    if found is None:
        return []
    request, micros = found
    near = sorted(rows[micros[rows] != UNKNOWN].tolist(), key=lambda row: (int(micros[row]), row))
    if not near:
        return [detail(view, rows, f"the latency to {request.place} is unknown")]
    names = view.names
    closest = "; ".join(f"{names[row]} is {ms(int(micros[row]))} ms away" for row in near[:NAMED])
    text = f"may be {ms(request.limit or 0)} ms from {request.place}; closest: {closest}"
    return [
        detail(
            view, rows, text, place=request.place, limitMs=ms(request.limit or 0), closestMs=ms(int(micros[near[0]]))
        )
    ]


def ms(micros: int) -> str:
    """Format microseconds as exact milliseconds, as in the annotation."""
    whole, part = divmod(micros, MICROS)
    return f"{whole}.{part:03}".rstrip("0").rstrip(".")
