"""Bodies for the API server, made from data/cases.txt and data/bases.yaml, and what was answered to them."""

import copy
import gzip
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

Json = dict[str, Any]

DATA = Path(__file__).parent / "data"
ANSWERS = DATA / "answers.json.gz"

_GENERATED = re.compile(r'"UP-[a-z0-9]{5}"')
_STEP = re.compile(r'"([^"]+)"|([^.\[\]]+)|\[(\d+)\]')
# What no two servers say alike, and what plugins of admission add to pods, which is not the kinds' business.
_UNSAID = ("uid", "creationTimestamp", "resourceVersion", "managedFields", "generateName")
_BY_ADMISSION = ("priority", "preemptionPolicy")
_DEFAULT_TOLERATIONS = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")


@dataclass(frozen=True, slots=True)
class Case:
    text: str
    base: str
    verb: str
    changes: tuple[str, ...]


def cases() -> list[Case]:
    found = []
    for line in (DATA / "cases.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            head, _, changes = line.partition(" ")
            base, _, verb = head.partition("/")
            found.append(Case(line, base, verb or "create", tuple(changes.split(" ;; ")) if changes else ()))
    for name, obj in bases().items():
        if name.startswith("rich-"):
            found.extend(_each_on_its_own(name, obj))
    return found


def _each_on_its_own(base: str, obj: Json) -> Iterator[Case]:
    """Every text, number, list and field of a rich object, spoiled or left out, one at a time."""
    yield Case(base, base, "create", ())
    for path, value in _leaves(obj, ""):
        for change in _spoiled(path, value):
            yield Case(f"{base} {change}", base, "create", (change,))
            yield Case(f"{base}/update {change}", base, "update", (change,))


def _leaves(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    if path:
        yield path, value
    if isinstance(value, dict):
        for key, one in value.items():
            if path or key not in ("apiVersion", "kind"):
                step = f'"{key}"' if "." in key else key
                yield from _leaves(one, f"{path}.{step}" if path else step)
    elif isinstance(value, list):
        for index, one in enumerate(value):
            yield from _leaves(one, f"{path}[{index}]")


def _spoiled(path: str, value: Any) -> Iterator[str]:
    if not path.endswith("]") and path not in ("metadata", "metadata.name", "metadata.namespace"):
        yield f"{path}-"
    if isinstance(value, bool):
        yield f"{path}={json.dumps(not value)}"
    elif isinstance(value, int):
        yield from (f"{path}={one}" for one in (0, -1, 70_000))
    elif isinstance(value, str) and ("quests." in path or "imits." in path or "capacity." in path):
        yield from (f'{path}="{one}"' for one in ("-1", "1500m", "3Gi"))
    elif isinstance(value, str) and not path.startswith("metadata.n"):
        yield from (f'{path}="{one}"' for one in ("", "A b", "x.y/../z"))
    elif isinstance(value, list) and value and path != "metadata.finalizers":
        yield f"{path}=[]"
        yield f"{path}[{len(value)}]={json.dumps(value[-1])}"


def bases() -> dict[str, Json]:
    found: dict[str, Json] = yaml.safe_load((DATA / "bases.yaml").read_text())
    return found


def changed(obj: Json, changes: tuple[str, ...]) -> Json:
    obj = copy.deepcopy(obj)
    for change in changes:
        path, equals, text = change.partition("=")
        if not equals or path.endswith("-"):
            _remove(obj, _steps(change.removesuffix("-")))
        else:
            _put(obj, _steps(path), json.loads(text))
    return obj


def _steps(path: str) -> list[Any]:
    return [int(number) if number else quoted or name for quoted, name, number in _STEP.findall(path)]


def _put(obj: Any, steps: list[Any], value: Any) -> None:
    for step in steps[:-1]:
        obj = obj[step] if isinstance(obj, list) else obj.setdefault(step, {})
    if isinstance(obj, list) and steps[-1] == len(obj):
        obj.append(value)
    else:
        obj[steps[-1]] = value


def _remove(obj: Any, steps: list[Any]) -> None:
    for step in steps[:-1]:
        obj = obj[step]
    if isinstance(obj, list) or steps[-1] in obj:
        del obj[steps[-1]]


def told(obj: Json) -> Json:
    """An object without what no two servers say alike."""
    obj = json.loads(json.dumps(obj))
    obj.pop("apiVersion", None)
    obj.pop("kind", None)
    meta = obj.get("metadata", {})
    for key in _UNSAID:
        meta.pop(key, None)
    if str(meta.get("name", "")).startswith(("a-", "n-")):  # generated
        meta.pop("name")
        meta.pop("labels", None)
    spec = obj.get("spec", {})
    for key in _BY_ADMISSION:
        spec.pop(key, None)
    if "tolerations" in spec:
        spec["tolerations"] = [one for one in spec["tolerations"] if one.get("key") not in _DEFAULT_TOLERATIONS]
    _unspoken(obj)
    return obj


def _unspoken(value: Any) -> None:
    """Take out nothings, times and addresses that the server chose."""
    if isinstance(value, dict):
        for key in list(value):
            one = value[key]
            _unspoken(one)
            if one in (None, {}, []) or key in ("lastTransitionTime", "lastProbeTime", "lastPhaseTransitionTime"):
                del value[key]
            elif (
                key in ("nodePort", "healthCheckNodePort")
                or (key == "clusterIP" and one != "None")
                or (key == "clusterIPs" and one != ["None"])
            ):
                value[key] = "chosen"
    elif isinstance(value, list):
        for one in value:
            _unspoken(one)


def causes_of(status: Json) -> list[list[str]]:
    """Field and message, sorted, each once; a message only up to its first line, for the rest shows Go's structs."""
    found = {
        (one.get("field", ""), _GENERATED.sub('"UP-xxxxx"', one["message"].split("\n")[0]))
        for one in status.get("details", {}).get("causes", [])
    }
    return [list(one) for one in sorted(found)]


def answers() -> dict[str, Json]:
    with gzip.open(ANSWERS, "rt") as file:
        found: dict[str, Json] = json.load(file)
    return found
