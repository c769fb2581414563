"""Writes a bill of materials, CycloneDX 1.6: situate, and every package that it needs at run time, as installed.

`python -m tools.sbom FILE`. The same packages and the same SOURCE_DATE_EPOCH give the same bytes.
"""

import json
import os
import re
import sys
import uuid
from datetime import UTC, datetime
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement

OURS = "situate"
NAMESPACE = uuid.UUID("8f2d5f0e-5a53-4f0b-9a0e-3f7f4c2c6b11")


def _key(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _needed(one: Distribution, extras: frozenset[str] = frozenset()) -> list[str]:
    """The packages that one needs here, without extras that nobody asked for."""
    wanted = [Requirement(line) for line in one.requires or ()]
    environments = [{"extra": extra} for extra in (extras or {""})]
    return sorted(
        {
            _key(each.name)
            for each in wanted
            if each.marker is None or any(each.marker.evaluate(where) for where in environments)
        }
    )


def installed(without: frozenset[str] = frozenset()) -> dict[str, Distribution]:
    """situate and everything that it needs, by name; without these packages, and what only they need."""
    found: dict[str, Distribution] = {}
    waiting = [OURS]
    while waiting:
        name = waiting.pop()
        if name in found or name in without:
            continue
        try:
            found[name] = distribution(name)
        except PackageNotFoundError as error:
            raise SystemExit(f"sbom: {name} is not installed here; run it where situate is") from error
        waiting += _needed(found[name])
    return dict(sorted(found.items()))


def _license(one: Distribution) -> list[dict[str, Any]]:
    if "License-Expression" in one.metadata:
        return [{"expression": one.metadata["License-Expression"]}]
    named = [line.rpartition(" :: ")[2] for line in one.metadata.get_all("Classifier") or () if "License ::" in line]
    return [{"license": {"name": name}} for name in named]


def _component(name: str, one: Distribution, kind: str) -> dict[str, Any]:
    purl = f"pkg:pypi/{name}@{one.version}"
    described = {"type": kind, "bom-ref": purl, "name": name, "version": one.version, "purl": purl}
    return described | ({"licenses": licenses} if (licenses := _license(one)) else {})


def bill(at: int) -> dict[str, Any]:
    packages = installed()
    refs = {name: f"pkg:pypi/{name}@{one.version}" for name, one in packages.items()}
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(NAMESPACE, ' '.join(refs.values()))}",
        "version": 1,
        "metadata": {
            "timestamp": datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "component": _component(OURS, packages[OURS], "application"),
        },
        "components": [_component(name, one, "library") for name, one in packages.items() if name != OURS],
        "dependencies": [
            {"ref": refs[name], "dependsOn": [refs[needed] for needed in _needed(one)]}
            for name, one in packages.items()
        ],
    }


def write(path: Path) -> None:
    path.write_text(json.dumps(bill(int(os.environ.get("SOURCE_DATE_EPOCH", "0"))), indent=2) + "\n")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
