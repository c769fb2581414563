"""Where our answer has another code than kube-apiserver's, and why: differences.json, by reason."""

import json
from functools import cache
from pathlib import Path

REASONS = Path(__file__).with_name("differences.json")


@cache
def differences() -> dict[str, str]:
    """The reason for each."""
    found: dict[str, list[str]] = json.loads(REASONS.read_text())
    return {name: reason for reason, names in found.items() for name in names}
