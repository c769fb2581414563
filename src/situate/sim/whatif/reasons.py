"""Why a pod waits, so that those that wait for the same can be counted: the message without numbers and advice."""

from __future__ import annotations

import re
from typing import Final

__all__ = ["reason_in"]

_AVAILABLE: Final = re.compile(r"\d+/\d+ nodes are available: ?(.*?)(?:\.(?: .*)?)?", re.DOTALL)
_PART: Final = re.compile(r"(?:^|, )\d+ (.*?)(?=, \d+ |$)", re.DOTALL)
LONGEST: Final = 300


def reason_in(message: str) -> str:
    """`Insufficient cpu, Too many pods` of a text of kube-scheduler's; of any other, the text itself."""
    told = _AVAILABLE.fullmatch(message)
    said = message if told is None else told[1]
    parts = _PART.findall(said) if told is not None else []
    text = ", ".join(sorted(dict.fromkeys(parts))) if parts else said
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
