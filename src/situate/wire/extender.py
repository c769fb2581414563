"""Requests to HTTP extenders and their responses, as JSON: kube-scheduler's extender API, version 1.

Fields are written under their Go names, and read whatever their case, as Go does. An answer that is not what was asked
for is an AnswerError that says in one line what is wrong. Whether a name was asked about is not looked at here. Opens
nothing.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from situate.core.changes import ExtenderSaid
from situate.core.effects import AskExtender, Bind, Victims
from situate.core.model.base import INT64_MAX, INT64_MIN
from situate.core.model.node import Node
from situate.core.model.pod import Pod

TEXT_CHARS: Final = 256
"""The length of an extender's text, at most."""


class ExtenderResponseError(Exception):
    """The response is unusable, or is an error. One line."""


# ── asking ──────────────────────────────────────────────────────────────────────────────────────────────────────────

_ENCODER: Final = msgspec.json.Encoder()


def encode_ask(
    ask: AskExtender, pod: Pod, nodes: Iterable[Node], victims: Mapping[str, Pod], *, names_do: bool
) -> bytes:
    """The body of a request. `names_do`: the extender knows the objects, so names and uids will do.

    Else `nodes` are the nodes that it is asked about, and `victims`, by uid, the pods that would have to leave.
    """
    if ask.verb == "preempt":
        whole = None if names_do else {one.node: _victims(one, victims) for one in ask.victims}
        meta = {one.node: _meta_victims(one) for one in ask.victims} if names_do else None
        return _ENCODER.encode({"Pod": _pod(pod), "NodeNameToVictims": whole, "NodeNameToMetaVictims": meta})
    items = None if names_do else {"metadata": {}, "items": list(nodes)}
    return _ENCODER.encode({"Pod": _pod(pod), "Nodes": items, "NodeNames": ask.nodes if names_do else None})


def encode_bind(bind: Bind) -> bytes:
    ref = bind.pod
    args = {"PodName": ref.name, "PodNamespace": ref.namespace, "PodUID": ref.uid, "Node": bind.node}
    return _ENCODER.encode(args)


def _victims(offered: Victims, pods: Mapping[str, Pod]) -> dict[str, Any]:
    known = (pods.get(ref.uid) for ref in offered.pods)
    return {"Pods": [_pod(pod) for pod in known if pod is not None], "NumPDBViolations": offered.violations}


def _meta_victims(offered: Victims) -> dict[str, Any]:
    return {"Pods": [{"UID": ref.uid} for ref in offered.pods], "NumPDBViolations": offered.violations}


def _pod(pod: Pod) -> dict[str, Any]:
    """The fields of a pod. Defaults that are not empty are written, since Go would decode them as empty."""
    values: dict[str, Any] = msgspec.to_builtins(pod)
    spec = values.setdefault("spec", {})
    spec["schedulerName"] = pod.spec.scheduler_name
    for container in (*spec.get("containers", ()), *spec.get("initContainers", ())):
        for port in container.get("ports", ()):
            port.setdefault("protocol", "TCP")
    return values


# ── answers ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def read_answer(ask: AskExtender, data: bytes, *, names_do: bool) -> ExtenderSaid:
    """Decode a response. Raises ExtenderResponseError."""
    value = _json(data)
    match ask.verb:
        case "filter":
            return _filtered(ask.ask, value, names_do=names_do)
        case "prioritize":
            return ExtenderSaid(ask.ask, scores=tuple(_score(item) for item in _list(value, "the answer")))
        case "preempt":
            agreed = _mapping(_field(value, "NodeNameToMetaVictims"), "NodeNameToMetaVictims")
            return ExtenderSaid(ask.ask, victims=tuple((node, _uids(held)) for node, held in agreed.items()))


def read_bind(data: bytes) -> str:
    """Why the extender did not bind the pod; "" if it did. Raises ExtenderResponseError."""
    return _text(_field(_json(data), "Error"), "Error")


def _filtered(ask: int, value: Any, *, names_do: bool) -> ExtenderSaid:
    if problem := _text(_field(value, "Error"), "Error"):
        raise ExtenderResponseError(problem)
    names, nodes = _field(value, "NodeNames"), _field(value, "Nodes")
    if names_do and names is not None:
        left = tuple(_text(name, "NodeNames") for name in _list(names, "NodeNames"))
    elif nodes is not None:
        left = tuple(_name(item) for item in _list(_field(nodes, "items"), "Nodes.items"))
    else:
        left = ()
    return ExtenderSaid(
        ask,
        nodes=left,
        refused=_refusals(value, "FailedNodes"),
        refused_for_good=_refusals(value, "FailedAndUnresolvableNodes"),
    )


def _refusals(value: Any, name: str) -> tuple[tuple[str, str], ...]:
    said = _mapping(_field(value, name), name)
    return tuple((node, one_line(_text(why, name))) for node, why in said.items())


def _name(item: Any) -> str:
    return _text(_field(_field(item, "metadata"), "name"), "Nodes.items.metadata.name")


def _score(item: Any) -> tuple[str, int]:
    host, score = _text(_field(item, "Host"), "Host"), _field(item, "Score")
    if score is None:
        return host, 0
    if not isinstance(score, int) or isinstance(score, bool) or not INT64_MIN <= score <= INT64_MAX:
        raise ExtenderResponseError("answered with a Score that is no integer")
    return host, score


def _uids(held: Any) -> tuple[str, ...]:
    if held is None:
        return ()
    return tuple(_text(_field(pod, "UID"), "UID") for pod in _list(_field(held, "Pods"), "Pods"))


# ── values of any shape ─────────────────────────────────────────────────────────────────────────────────────────────


def _json(data: bytes) -> Any:
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise ExtenderResponseError("answered with what is not JSON") from None


def _field(value: Any, name: str) -> Any:
    """A field, ignoring the case of its name; None if it is missing."""
    if value is None:
        return None
    if not isinstance(value, dict):
        raise ExtenderResponseError(f"answered with something else than an object where {name} should be")
    if name in value:
        return value[name]
    folded = name.lower()
    return next((held for key, held in value.items() if key.lower() == folded), None)


def _list(value: Any, what: str) -> list[Any]:
    if value is None:
        return []
    if not isinstance(value, list):
        raise ExtenderResponseError(f"answered with something else than a list: {what}")
    return value


def _mapping(value: Any, what: str) -> dict[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise ExtenderResponseError(f"answered with something else than an object: {what}")
    return value


def _text(value: Any, what: str) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise ExtenderResponseError(f"answered with something else than text: {what}")
    return value


def one_line(text: str) -> str:
    """The text on one line, cut to fit a message."""
    short = text[: TEXT_CHARS * 2]
    line = " ".join("".join(char if char.isprintable() else " " for char in short).split())
    return line if len(line) <= TEXT_CHARS and len(text) <= len(short) else line[: TEXT_CHARS - 4] + " ..."
