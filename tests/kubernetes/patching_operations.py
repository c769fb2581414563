"""Random JSON patches of an object, the same for the same dice."""

from collections.abc import Iterator
from typing import Any

from kubernetes.patching_cases import Json, Rng, pick, texts


def operations(rng: Rng, live: Json) -> list[Json]:
    """A JSON patch of things that are there, and of some that are not."""
    places = [path for path in pointers(live) if path.startswith(("/metadata/labels", "/data", "/spec"))]
    found: list[Json] = []
    for _ in range(rng.randint(1, 3)):
        path = pick(rng, *places, "/metadata/labels/new", "/metadata/annotations") if places else "/metadata/labels"
        match rng.randrange(6):
            case 0:
                found.append({"op": "remove", "path": path})
            case 1:
                found.append({"op": "copy", "from": path, "path": "/metadata/labels/copied"})
            case 2:
                found.append({"op": "test", "path": path, "value": at(live, path)})
            case 3:
                found.append({"op": "move", "from": path, "path": "/metadata/labels/moved"})
            case 4:
                found.append({"op": "add", "path": "/metadata/labels", "value": texts(rng, nulls=False)})
            case _:
                found.append({"op": "replace", "path": path, "value": pick(rng, "1", 2, at(live, path))})
    return found


def pointers(value: Any, path: str = "") -> Iterator[str]:
    if isinstance(value, dict):
        for name, inner in value.items():
            below = f"{path}/{name.replace('~', '~0').replace('/', '~1')}"
            yield below
            yield from pointers(inner, below)
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield f"{path}/{index}"
            yield from pointers(inner, f"{path}/{index}")


def at(value: Any, path: str) -> Any:
    for step in path.split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        try:
            value = value[int(name)] if isinstance(value, list) else value[name]
        except (KeyError, TypeError, IndexError):
            return None
    return value
