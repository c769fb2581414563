"""Which fields of a custom PodGroup have no effect is logged once for each group."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from situate.core.changes import ObjectGone, ObjectSeen
from situate.core.config.defaults import default_configuration
from situate.core.engine.engine import Engine
from situate.core.model.custom_groups.kind import NO_QUEUES
from situate.core.model.custom_groups.volcano import VolcanoPodGroup
from situate.core.model.meta import ObjectMeta
from situate.loop import ignored_fields
from situate.loop.ignored_fields import IgnoredFieldsLog
from situate.loop.logs import KEYS


def group(name: str = "train", **spec: Any) -> VolcanoPodGroup:
    return VolcanoPodGroup(metadata=ObjectMeta(name=name, namespace="ml"), spec={"minMember": 3, **spec})


def said(caplog: pytest.LogCaptureFixture, *steps: ObjectSeen | ObjectGone) -> list[dict[str, Any]]:
    engine, log = Engine(default_configuration()), IgnoredFieldsLog()
    with caplog.at_level(logging.INFO, logger="situate"):
        for step in steps:
            log.before(engine, 0, [step])
    return [getattr(record, KEYS) for record in caplog.records]


def test_a_group_is_named_once_with_its_fields(caplog: pytest.LogCaptureFixture) -> None:
    (line,) = said(caplog, ObjectSeen(group(queue="a")), ObjectSeen(group(queue="b")))
    assert line == {"group": "scheduling.volcano.sh", "name": "ml/train", "fields": f"spec.queue ({NO_QUEUES})"}


def test_a_group_whose_fields_all_have_an_effect_is_not_named(caplog: pytest.LogCaptureFixture) -> None:
    assert said(caplog, ObjectSeen(group())) == []


def test_a_group_is_named_again_when_it_has_other_fields_or_comes_back(caplog: pytest.LogCaptureFixture) -> None:
    first, second = group(queue="a"), group(queue="a", invented=1)
    assert len(said(caplog, ObjectSeen(first), ObjectSeen(second), ObjectGone(second), ObjectSeen(second))) == 3


def test_what_is_remembered_has_a_limit(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ignored_fields, "MOST_SAID", 2)
    steps = [ObjectSeen(group(name, queue="a")) for name in ("a", "b", "c", "a", "c")]
    assert [line["name"] for line in said(caplog, *steps)] == ["ml/a", "ml/b", "ml/c", "ml/a"]
