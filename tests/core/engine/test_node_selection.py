"""Which node a pod gets where its profile looks at a sample of the nodes only."""

from __future__ import annotations

from typing import Any

from builders import node, pod
from situate.core.changes import NodeSeen, PodSeen
from situate.core.config.decode import decode
from situate.core.config.defaults import with_defaults
from situate.core.effects import Bind
from situate.core.engine.engine import Engine

NODES = 40


def drawing(sample: int) -> Engine:
    """Every pod draws as many nodes."""
    head = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    engine = Engine(with_defaults(decode({**head, "profiles": [{"nodeSample": sample}]})))
    engine.step(0, [NodeSeen(node(f"n{at}", cpu="4", memory="8Gi", pods="110")) for at in range(NODES)])
    return engine


def chosen(engine: Engine, name: str, **fields: Any) -> str | None:
    effects = engine.step(1, [PodSeen(pod(name, cpu="1", **fields))])
    return next((effect.node for effect in effects if isinstance(effect, Bind)), None)


def test_pods_of_one_name_draw_by_their_uid_and_pods_without_one_by_their_name() -> None:
    by_uid = [chosen(drawing(1), "web", uid=uid) for uid in "abcd"]
    assert len(dict.fromkeys(by_uid)) > 1
    assert by_uid == [chosen(drawing(1), name, uid=uid) for name, uid in zip("wxyz", "abcd", strict=True)]
    assert len(dict.fromkeys(chosen(drawing(1), name, uid="") for name in "wxyz")) > 1
