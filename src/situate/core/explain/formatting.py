"""Formats amounts, taints, selectors and domains as people type them."""

from __future__ import annotations

from typing import Final

from situate.core.model.labels import DOES_NOT_EXIST, EXISTS, IN, NOT_IN, Requirement, Selector
from situate.core.model.resources import CPU, EPHEMERAL_STORAGE, HUGE_PAGES, MEMORY
from situate.core.model.tolerations import Taint
from situate.core.state.matching import Matcher, PodTerm

_BYTES: Final = (MEMORY, EPHEMERAL_STORAGE)
_BINARY: Final = (("Ti", 40), ("Gi", 30), ("Mi", 20), ("Ki", 10))


def in_bytes(resource: str) -> bool:
    return resource in _BYTES or resource.startswith(HUGE_PAGES)


def quantity(resource: str, amount: int) -> str:
    """The exact amount as a Kubernetes quantity; cpu is in millicores."""
    if resource == CPU:
        return str(amount // 1000) if amount % 1000 == 0 else f"{amount}m"
    if in_bytes(resource) and amount:
        for suffix, power in _BINARY:
            if amount % (1 << power) == 0:
                return f"{amount >> power}{suffix}"
    return str(amount)


def roughly(resource: str, amount: int) -> str:
    """The same, rounded for reading: bytes with one decimal."""
    exact = quantity(resource, amount)
    if not in_bytes(resource) or len(exact) <= len("1023Mi"):
        return exact
    for suffix, power in _BINARY:
        if abs(amount) >= 1 << power:
            return f"{amount / (1 << power):.1f}{suffix}"
    return exact


def taint_text(taint: Taint) -> str:
    """In the syntax of `kubectl taint`: `dedicated=gpu:NoSchedule`."""
    return f"{taint.key}={taint.value}:{taint.effect}" if taint.value else f"{taint.key}:{taint.effect}"


def requirement_text(one: Requirement) -> str:
    """In the syntax of `kubectl get -l`, where it has one: `disk=ssd`, `zone in (a,b)`, `!spot`."""
    match one.operator:
        case operator if operator == IN and len(one.values) == 1:
            return f"{one.key}={one.values[0]}"
        case operator if operator == IN:
            return f"{one.key} in ({','.join(one.values)})"
        case operator if operator == NOT_IN:
            return f"{one.key} notin ({','.join(one.values)})"
        case operator if operator == EXISTS:
            return one.key
        case operator if operator == DOES_NOT_EXIST:
            return f"!{one.key}"
        case _:
            return f"{one.key} {one.operator} {','.join(one.values)}"


def selector_text(selector: Selector) -> str:
    if selector.nothing:
        return "no pod at all"
    return ",".join(requirement_text(one) for one in selector.requirements) or "any pod"


def term_text(term: PodTerm) -> str:
    """The pods that a term matches: labels and namespaces."""
    places = [f"namespace {', '.join(term.namespaces)}"] if term.namespaces else []
    if term.namespace_selector is not None:
        chosen = ",".join(requirement_text(one) for one in term.namespace_selector.requirements)
        places.append(f"namespaces with {chosen}" if chosen else "any namespace")
    return f"{selector_text(term.selector)} in {' or '.join(places)}"


def matcher_text(matcher: Matcher) -> str:
    return " and ".join(term_text(term) for term in matcher.terms)


def counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"
