"""Validation of probes and lifecycle hooks."""

from collections.abc import Mapping
from typing import Any, Final

from situate.server.kinds.field_checks import FieldChecks
from situate.server.kinds.field_errors import Causes
from situate.server.kinds.names import header_name, port_name, port_number

_PROBE: Final = FieldChecks("core.v1.Probe")
_HTTP_GET: Final = FieldChecks("core.v1.HTTPGetAction")
_PROBE_HANDLERS: Final = ("exec", "httpGet", "tcpSocket", "grpc")
_HOOK_HANDLERS: Final = ("exec", "httpGet", "tcpSocket", "sleep")


def probes(container: Mapping[str, Any], grace_s: int, path: str, causes: Causes) -> None:
    for key in ("livenessProbe", "readinessProbe", "startupProbe"):
        if key in container:
            _probe(container[key], key == "readinessProbe", grace_s, f"{path}.{key}", causes)


def _probe(probe: Mapping[str, Any], readiness: bool, grace_s: int, path: str, causes: Causes) -> None:
    _handler(probe, _PROBE_HANDLERS, grace_s, path, causes)
    _PROBE.check(probe, path, causes)
    termination = probe.get("terminationGracePeriodSeconds")
    where = f"{path}.terminationGracePeriodSeconds"
    if termination is not None and termination <= 0:
        causes.invalid(where, termination, "must be greater than 0")
    if readiness:
        if termination is not None:
            causes.invalid(where, termination, "must not be set for readinessProbes")
    elif probe.get("successThreshold", 0) != 1:
        causes.invalid(f"{path}.successThreshold", probe.get("successThreshold", 0), "must be 1")


def lifecycle(found: Mapping[str, Any], grace_s: int, path: str, causes: Causes) -> None:
    for key in ("postStart", "preStop"):
        if key in found:
            _handler(found[key], _HOOK_HANDLERS, grace_s, f"{path}.{key}", causes)


def _handler(handler: Mapping[str, Any], kinds: tuple[str, ...], grace_s: int, path: str, causes: Causes) -> None:
    count = 0
    for kind in kinds:
        if kind not in handler:
            continue
        if count:
            causes.forbidden(f"{path}.{kind}", "may not specify more than 1 handler type")
            continue
        count += 1
        _action(kind, handler[kind], grace_s, f"{path}.{kind}", causes)
    causes.require(count, path, "must specify a handler type")


def _action(kind: str, action: Mapping[str, Any], grace_s: int, path: str, causes: Causes) -> None:
    if kind == "exec":
        causes.require(action.get("command"), f"{path}.command")
    elif kind == "sleep":
        seconds = action.get("seconds", 0)
        if seconds < 0 or seconds > grace_s:
            detail = f"must be non-negative and less than terminationGracePeriodSeconds ({grace_s})"
            causes.invalid(path, seconds, detail)
    elif kind == "httpGet":
        causes.require(action.get("path"), f"{path}.path")
        port_or_name(action.get("port", 0), f"{path}.port", causes)
        _HTTP_GET.check(action, path, causes, "scheme")
        for header in action.get("httpHeaders", ()):
            causes.check(header_name, header.get("name", ""), f"{path}.httpHeaders")
    else:
        port_or_name(action.get("port", 0), f"{path}.port", causes)


def port_or_name(port: int | str, path: str, causes: Causes) -> None:
    causes.check(port_name if isinstance(port, str) else port_number, port, path)
