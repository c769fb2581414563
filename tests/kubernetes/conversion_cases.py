"""Conversion webhooks, good and bad, and what is done with objects that they convert."""

import json
import time
from collections.abc import Callable
from copy import deepcopy
from typing import Any

from kubernetes.webhook_server import Answer, Json

GROUP = "conversion.example.com"
API = "apiextensions.k8s.io"


def split(obj: Json, wanted: str) -> Json:
    """The conversion itself: v1 has host and port, v2 both in one field."""
    made = deepcopy(obj)
    spec = made.setdefault("spec", {})
    if wanted.endswith("/v2") and "host" in spec:
        spec["hostPort"] = f"{spec.pop('host')}:{spec.pop('port', '')}"
    elif wanted.endswith("/v1") and "hostPort" in spec:
        spec["host"], _, spec["port"] = str(spec.pop("hostPort")).partition(":")
    return {**made, "apiVersion": wanted}


def review(asked: Json, objects: list[Any], version: str = "", uid: str = "", **result: Any) -> Answer:
    response = {
        "uid": uid or asked["uid"],
        "convertedObjects": objects,
        "result": result or {"status": "Success"},
    }
    answer = {"kind": "ConversionReview", "apiVersion": version or asked["apiVersion"], "response": response}
    return 200, json.dumps(answer).encode()


def good(asked: Json) -> list[Json]:
    return [split(one, asked["desiredAPIVersion"]) for one in asked["objects"]]


def changed(change: Callable[[Json], Any]) -> Callable[[Json], Answer]:
    """A webhook that changes each object that it has converted."""

    def answer(asked: Json) -> Answer:
        made = good(asked)
        for one in made:
            change(one)
        return review(asked, made)

    return answer


def of_metadata(**fields: Any) -> Callable[[Json], Answer]:
    return changed(lambda one: one["metadata"].update(fields))


def slow(asked: Json) -> Answer:
    time.sleep(1.0)
    return review(asked, good(asked))


ANSWERS: dict[str, Callable[[Json], Answer]] = {
    "good": lambda one: review(one, good(one)),
    "slow": slow,
    "failed": lambda one: review(one, [], status="Failure", message="cannot be converted today"),
    "silent-failure": lambda one: review(one, [], status="Failure"),
    "no-status": lambda one: review(one, good(one), message="fine"),
    "none": lambda one: review(one, []),
    "twice": lambda one: review(one, good(one) * 2),
    "same-version": lambda one: review(one, one["objects"]),
    "other-kind": changed(lambda one: one.update(kind="Other")),
    "no-kind": changed(lambda one: one.pop("kind")),
    "no-version": changed(lambda one: one.pop("apiVersion")),
    "no-metadata": changed(lambda one: one.pop("metadata")),
    "text-metadata": changed(lambda one: one.update(metadata="x")),
    "renamed": of_metadata(name="other"),
    "moved": of_metadata(namespace="other"),
    "other-uid": of_metadata(uid="other"),
    "labelled": of_metadata(labels={"a": "b"}, annotations={"c": "d"}),
    "unlabelled": of_metadata(labels=None, annotations={}),
    "bad-label": of_metadata(labels={"a": "not a label"}),
    "number-label": of_metadata(labels={"a": 7}),
    "list-labels": of_metadata(labels=["a"]),
    "bad-annotation": of_metadata(annotations={"not a key": "x"}),
    "meta": of_metadata(finalizers=["x/y"], generation=77, ownerReferences=[], resourceVersion="9", nonsense=1),
    "unknown-field": changed(lambda one: one["spec"].update(extra="x", host="unexpected", hostPort="un:expected")),
    "wrong-type": changed(lambda one: one["spec"].update(host=7, hostPort=7)),
    "list": lambda one: review(one, [good(one)]),
    "text": lambda one: review(one, ["x"]),
    "http-500": lambda _: (500, b"it broke"),
    "http-404": lambda _: (404, b"not here"),
    "empty": lambda _: (200, b"{}"),
    "wrong-uid": lambda one: review(one, good(one), uid="other"),
    "absent": lambda one: (200, json.dumps({"kind": "ConversionReview", "apiVersion": one["apiVersion"]}).encode()),
    "other-review": lambda one: review(one, good(one), version=f"{API}/v1beta1"),
    "old": lambda one: review(one, good(one)),
    "old-uid": lambda one: review(one, good(one), uid="other"),
}
OLD = ("old", "old-uid")
"""These speak v1beta1."""


def kind_of(case: str) -> str:
    return "".join(one.capitalize() for one in case.split("-"))


def plural_of(case: str) -> str:
    return f"{case.replace('-', '')}s"


def definition(case: str, client: Json, storage: str = "v1") -> Json:
    kind, plural = kind_of(case), plural_of(case)
    text = {"type": "string"}
    fields = {
        "v1": {"host": text, "port": text, "count": {"type": "integer", "default": 3}},
        "v2": {"hostPort": text, "count": {"type": "integer"}, "mode": {"type": "string", "default": "fast"}},
    }
    versions = [
        {
            "name": name,
            "served": True,
            "storage": name == storage,
            "subresources": {
                "status": {},
                "scale": {"specReplicasPath": ".spec.count", "statusReplicasPath": ".status.ready"},
            },
            "schema": {
                "openAPIV3Schema": {
                    "type": "object",
                    "properties": {
                        "spec": {"type": "object", "properties": found},
                        "status": {"type": "object", "properties": {"ready": {"type": "integer"}}},
                    },
                }
            },
        }
        for name, found in fields.items()
    ]
    webhook = {
        "clientConfig": client,
        "conversionReviewVersions": ["v1beta1", "v1"] if case in OLD else ["v1", "v1beta1"],
    }
    return {
        "apiVersion": f"{API}/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {"plural": plural, "kind": kind},
            "versions": versions,
            "conversion": {"strategy": "Webhook", "webhook": webhook},
        },
    }


def thing(case: str, name: str, version: str, **spec: Any) -> Json:
    meta = {"name": name, "labels": {"was": "here"}, "annotations": {"was": "there"}}
    return {"apiVersion": f"{GROUP}/{version}", "kind": kind_of(case), "metadata": meta, "spec": spec}
