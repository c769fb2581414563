"""Writes the status of pending pods, their conditions and nominated node, and the condition of PodGroups.

What differs goes into one patch. The patch names the version of the pod that was compared, so that a late one cannot
mark a bound pod as pending.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, TypeGuard

import msgspec

from situate.core.changes import PodRef
from situate.core.effects import SetCondition, SetGroupCondition
from situate.core.model.group import POD_GROUP_INITIALLY_SCHEDULED, POD_GROUP_SCHEDULED
from situate.core.model.pod import Pod
from situate.core.state.classes import signature
from situate.kube.client import Client
from situate.kube.errors import ApiError
from situate.kube.pods import ANOTHER, pod_path, read_pod
from situate.loop.scheduling.port import PodNote, WriteOutcome
from situate.loop.scheduling.view import EngineView
from situate.wire.patches import STRATEGIC, ConditionPatch, status_patch

PATCH_S: Final = 15.0
TRIES: Final = 4
RETRY_S: Final = 0.01
"""How long to wait before the first retry; RETRY_FACTOR times as long before each later one."""
RETRY_FACTOR: Final = 5
REMEMBERED: Final = 1 << 16
"""For how many pods to remember what was written. A forgotten pod is patched once more, to no effect."""


@dataclass(frozen=True, slots=True)
class GroupApi:
    """The API group version of PodGroups, and the name of their condition in it."""

    path: str = "/apis/scheduling.k8s.io/v1alpha2"
    condition: str = POD_GROUP_SCHEDULED

    @staticmethod
    def of(version: str | None) -> GroupApi:
        """Of the version that the API server has; None: it has no PodGroups, and there is nothing to write."""
        if version is None or version == "v1alpha2":
            return GroupApi()
        return GroupApi(f"/apis/scheduling.k8s.io/{version}", POD_GROUP_INITIALLY_SCHEDULED)


@dataclass(slots=True, eq=False)
class _LastWrite:
    """What this process last wrote to a pod."""

    conditions: dict[str, int] = field(default_factory=dict)
    """By type, a hash of its fields: the messages are long."""
    nominated: str | None = None
    version: str = ""
    """Of the pod after that write, if only we have changed it since the version that was compared."""


class _Meta(msgspec.Struct, rename="camel"):
    resource_version: str = ""


class _Answer(msgspec.Struct):
    metadata: _Meta


_answer = msgspec.json.Decoder(_Answer).decode


class StatusWriter:
    """Writes the status of pods and groups, and remembers what it wrote until the engine has seen it."""

    def __init__(
        self,
        client: Client,
        objects: EngineView,
        may_write: Callable[[], bool],
        now_ns: Callable[[], int],
        *,
        groups: Callable[[], GroupApi],
    ) -> None:
        self._client = client
        self._objects = objects
        self._may_write = may_write
        self._now_ns = now_ns
        self._groups = groups
        self._written: OrderedDict[str, _LastWrite] = OrderedDict()

    def version(self, pod: Pod) -> str:
        """The newest version of a pod that differs from this one only in what we wrote."""
        seen, written = pod.metadata.resource_version, self._written.get(pod.metadata.uid)
        return written.version if written is not None and _is_later(written.version, seen) else seen

    def forget(self, ref: PodRef) -> None:
        """The pod is not pending any more."""
        self._written.pop(ref.uid, None)

    async def write(self, note: PodNote, superseded: Callable[[], bool]) -> WriteOutcome:
        """Write a note, with retries, unless nothing differs or a newer note supersedes it."""
        pod = compared = self._objects.pod(note.ref)
        pause_s = RETRY_S
        for tries_left in range(TRIES - 1, -1, -1):
            if not self._is_pending(compared, note.ref) or not self._may_write():
                break  # it is gone or bound, so the note is not true any more
            try:
                await self._patch(note, compared, chained=_same_to_scheduler(compared, pod))
                break
            except ApiError as error:
                if error.not_found:
                    break
                another = error.status == ANOTHER and tries_left == TRIES - 1
                if not (error.conflict or error.temporary or another) or not tries_left:
                    return WriteOutcome.REFUSED
                if error.conflict or another:
                    self.forget(note.ref)  # the pod itself is newer
                    try:
                        compared = await read_pod(self._client, note.ref)
                    except ApiError:
                        return WriteOutcome.REFUSED
                else:
                    await asyncio.sleep(pause_s)
                    pause_s *= RETRY_FACTOR
            if superseded():
                break
        return WriteOutcome.DONE

    @staticmethod
    def _is_pending(pod: Pod | None, ref: PodRef) -> TypeGuard[Pod]:
        return pod is not None and pod.metadata.uid == ref.uid and not pod.spec.node_name

    def _differing(self, note: PodNote, pod: Pod) -> tuple[list[ConditionPatch], str | None]:
        """The parts of a note that differ from the pod and from what was written last."""
        written = self._written.get(note.ref.uid)
        seen = {one.type: one for one in pod.status.conditions}
        conditions = []
        for one in note.conditions.values():
            before = seen.get(one.type)
            if written is not None and one.type in written.conditions:
                if written.conditions[one.type] == _digest(one):
                    continue
            elif before is not None and (before.status, before.reason, before.message) == _fields(one):
                continue
            since_ns = None if before is not None and before.status == one.status else self._now_ns()
            generation = pod.metadata.generation
            conditions.append(ConditionPatch(one.type, one.status, one.reason, one.message, generation, since_ns))
        is_nominated = pod.status.nominated_node_name
        if written is not None and written.nominated is not None:
            is_nominated = written.nominated
        nominated = note.nominated if note.nominated is not None and note.nominated != is_nominated else None
        return conditions, nominated

    async def _patch(self, note: PodNote, pod: Pod, *, chained: bool) -> None:
        conditions, nominated = self._differing(note, pod)
        if not conditions and nominated is None:
            return
        body = status_patch(note.ref.uid, self.version(pod), conditions, nominated)
        path = f"{pod_path(note.ref)}/status"
        answer = await self._client.request("PATCH", path, body=body, content_type=STRATEGIC, timeout_s=PATCH_S)
        written = self._written.pop(note.ref.uid, None) or _LastWrite()
        for one in note.conditions.values():
            written.conditions[one.type] = _digest(one)
        if note.nominated is not None:
            written.nominated = note.nominated
        written.version = _version_in(answer) if chained else ""
        self._written[note.ref.uid] = written  # the newest is forgotten last
        if len(self._written) > REMEMBERED:
            self._written.popitem(last=False)

    async def write_group(self, said: SetGroupCondition) -> WriteOutcome:
        """Set the condition of a PodGroup, with retries, if it differs."""
        group, where = self._objects.group(said.namespace, said.name), self._groups()
        if group is None:
            return WriteOutcome.DONE
        before = next((one for one in group.status.conditions if one.type == where.condition), None)
        if before is not None and (before.status, before.reason, before.message) == _fields(said):
            return WriteOutcome.DONE
        since_ns = None if before is not None and before.status == said.status else self._now_ns()
        generation = group.metadata.generation
        made = ConditionPatch(where.condition, said.status, said.reason, said.message, generation, since_ns)
        path = f"{where.path}/namespaces/{said.namespace}/podgroups/{said.name}/status"
        body, pause_s = status_patch(group.metadata.uid, "", (made,), None), RETRY_S
        for tries_left in range(TRIES - 1, -1, -1):
            if not self._may_write():
                break
            try:
                await self._client.request("PATCH", path, body=body, content_type=STRATEGIC, timeout_s=PATCH_S)
                break
            except ApiError as error:
                if error.not_found or error.conflict:
                    break  # the group is gone, or another has its name
                if not error.temporary or not tries_left:
                    return WriteOutcome.REFUSED
            await asyncio.sleep(pause_s)
            pause_s *= RETRY_FACTOR
        return WriteOutcome.DONE


def _same_to_scheduler(one: Pod, other: Pod | None) -> bool:
    """Whether two versions of a pod are the same to the scheduler."""
    return one is other or (other is not None and signature(one) == signature(other))


def _fields(one: SetCondition | SetGroupCondition) -> tuple[str, str, str]:
    return one.status, one.reason, one.message


def _digest(one: SetCondition) -> int:
    return hash(_fields(one))


def _version_in(answer: bytes) -> str:
    try:
        return _answer(answer).metadata.resource_version
    except msgspec.DecodeError:
        return ""


def _is_later(one: str, other: str) -> bool:
    """Whether one version is later than another. Versions that are not decimal numbers are not compared."""
    return one.isdecimal() and other.isdecimal() and int(one) > int(other)
