"""Health checks as Kubernetes' servers report them: /healthz, /livez and /readyz. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from situate.loop.logs import Log

_log = Log(__name__)


@dataclass(frozen=True, slots=True)
class Check:
    """A health check: `problem` says what is wrong, or is empty."""

    name: str
    problem: Callable[[], str]


PING: Final = Check("ping", lambda: "")


def report_one(checks: Iterable[Check], name: str) -> tuple[int, str] | None:
    """Status and text for one check; None if there is no such check."""
    for check in checks:
        if check.name == name:
            problem = check.problem()
            return (500, f"internal server error: {problem}\n") if problem else (200, "ok")
    return None


def report_all(endpoint: str, checks: Sequence[Check], exclude: Iterable[str], *, verbose: bool) -> tuple[int, str]:
    """Status and text for all checks of an endpoint, such as "healthz": `ok`, or a line for each check."""
    excluded = dict.fromkeys(exclude)
    lines, failed = [], []
    for check in checks:
        if check.name in excluded:
            del excluded[check.name]
            lines.append(f"[+]{check.name} excluded: ok\n")
        elif problem := check.problem():
            failed.append(f"[-]{check.name} failed: {problem}")
            lines.append(f"[-]{check.name} failed: reason withheld\n")
        else:
            lines.append(f"[+]{check.name} ok\n")
    if excluded:
        unknown = ",".join(f'"{one}"' for one in sorted(excluded))
        lines.append(f"warn: some health checks cannot be excluded: no matches for {unknown}\n")
    if failed:
        _log.v(2).info("Health check failed", check=endpoint, failed=failed)
        return 500, f"{''.join(lines)}{endpoint} check failed\n"
    return 200, f"{''.join(lines)}{endpoint} check passed\n" if verbose else "ok"
