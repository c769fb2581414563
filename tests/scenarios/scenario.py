"""Scenarios: a story told to a scheduler in lines of text, and what it answers, for people to read.

    node n1 cpu=2
    pod web cpu=1
    step
    ----
    bind web to n1 #1

A file is blocks of commands, `----` and the expected answer, parted by empty lines. One scheduler lives through a whole
file. Nothing happens by itself: time moves and answers come when the story says so.

| command | meaning |
|---|---|
| `node NAME FIELD=VALUE ...` | A node came, or these fields of it changed. |
| `node-gone NAME` | |
| `pod NAME FIELD=VALUE ...` | A pod came, or these fields of it changed. `on=NODE` is where it is bound. |
| `pod-gone NAME` | |
| `pod-gone-unheard NAME` | The same, and the scheduler is not told. |
| `bind-done NAME`, `bind-failed NAME PROBLEM` | The answer to the last bind of the pod; `attempt=N` to an older one. |
| `bind-refused NAME PROBLEM` | The same, for good. |
| `evict-done NAME`, `evict-failed NAME PROBLEM` | |
| `step [MILLISECONDS]` | So much later, the scheduler hears all that, and what it asks for is printed. |
| `where` | Prints where every waiting pod is, and what is promised and reserved. |
| `restart` | The scheduler dies; another is told all that there is. |
| `config FIELD=VALUE ...` | Before the first step: `percentage=50`, `sample=2`, `backoff=1..5`, `unscored=yes`. |
| `extender VERB ...` | Before the first step: an extender with these verbs; `ignorable`; `gpu`, which it manages. |
| `extender-said ASK left=N1,N2` | Its answer: nodes that are left. Or `problem=WORD`, or `victims=NODE:POD+POD,...`. |
| `repeat TIMES COMMAND; ...` | So often, with 0, 1, 2 ... for `{}`; only what the last of them says is printed. |
| `kept` | Prints how much the scheduler remembers. |
| `audit` | Counts all that it keeps again, and prints what is not as kept. |
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, assert_never

from msgspec.structs import replace

from situate.core.changes import (
    BindDone,
    BindFailed,
    Change,
    EvictDone,
    EvictFailed,
    ExtenderSaid,
    NodeGone,
    NodeSeen,
    PodGone,
    PodRef,
    PodSeen,
)
from situate.core.config.defaults import default_configuration, with_defaults
from situate.core.config.types import (
    Extender,
    ExtenderManagedResource,
    KubeSchedulerConfiguration,
    KubeSchedulerProfile,
    PluginRef,
    Plugins,
    PluginSet,
)
from situate.core.effects import (
    AskExtender,
    Bind,
    BindClaims,
    BindVolumes,
    Effect,
    Evict,
    Nominate,
    ReleaseClaim,
    Report,
    SetCondition,
    SetGroupCondition,
    UnreserveClaims,
)
from situate.core.engine.engine import Engine
from situate.core.model.labels import LabelSelector
from situate.core.model.meta import ObjectMeta
from situate.core.model.node import Node
from situate.core.model.pod import (
    DEFAULT_SCHEDULER,
    Affinity,
    Container,
    ContainerPort,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    PodSchedulingGate,
    PodSpec,
    PodStatus,
    ResourceRequirements,
    TopologySpreadConstraint,
)
from situate.core.model.tolerations import Taint, Toleration
from situate.core.state.audit import audit
from situate.core.state.pods import DISRUPTION_TARGET, timestamp_text
from situate.sim.store import ref_of
from situate.sim.workload import GPU, HOSTNAME, ZONE

PARTED: Final = "----"
VERBS: Final = ("filter", "prioritize", "preempt", "bind")


class ScenarioError(ValueError):
    """A line that says nothing a scenario could do."""


@dataclass(frozen=True, slots=True)
class Block:
    """Some commands, and what they were expected to print."""

    commands: tuple[str, ...]
    expected: tuple[str, ...]


def parse(text: str) -> list[Block]:
    """The blocks of a file. Whatever stands before the first `----` of a block is a command or a comment."""
    blocks: list[Block] = []
    commands: list[str] = []
    lines = iter(text.splitlines())
    for line in lines:
        if line != PARTED:
            commands.append(line)
            continue
        expected: list[str] = []
        for answer in lines:
            if not answer:
                break
            expected.append(answer)
        blocks.append(Block(tuple(commands), tuple(expected)))
        commands = []
    if any(line.strip() and not line.startswith("#") for line in commands):
        raise ScenarioError(f"commands without {PARTED}: {commands}")
    return blocks


def render(blocks: Iterable[Block]) -> str:
    return "\n\n".join("\n".join([*block.commands, PARTED, *block.expected]) for block in blocks) + "\n"


def play(blocks: Iterable[Block]) -> list[Block]:
    """The same blocks, with what they print now."""
    story = Story()
    return [Block(block.commands, tuple(story.tell(block.commands))) for block in blocks]


class Story:
    """One scheduler, and all that it has been told."""

    def __init__(self) -> None:
        self.now = 0
        self._config = default_configuration()
        self.engine = Engine(self._config)
        self._nodes: dict[str, Node] = {}
        self._pods: dict[str, Pod] = {}
        self._refs: dict[str, PodRef] = {}
        self._attempts: dict[str, int] = {}
        self._told: list[Change] = []
        self._uids = 0
        self._commands: Mapping[str, Callable[[list[str]], Iterable[str] | None]] = {
            "node": self._node,
            "node-gone": self._node_gone,
            "pod": self._pod,
            "pod-gone": self._pod_gone,
            "pod-gone-unheard": lambda words: self._pods.__delitem__(words[0]),
            "bind-done": self._bind_done,
            "bind-failed": lambda words: self._bind_failed(words, final=False),
            "bind-refused": lambda words: self._bind_failed(words, final=True),
            "evict-done": lambda words: self._told.append(EvictDone(self._refs[words[0]])),
            "evict-failed": lambda words: self._told.append(EvictFailed(self._refs[words[0]], " ".join(words[1:]))),
            "step": self._step,
            "where": lambda _: self._where(),
            "restart": self._restart,
            "config": self._configure,
            "extender": self._extender,
            "extender-said": self._extender_said,
            "repeat": self._repeat,
            "kept": lambda _: self._kept(),
            "audit": lambda _: audit(self.engine.cluster) or ["all is as counted"],
        }

    def tell(self, commands: Iterable[str]) -> Iterator[str]:
        for line in commands:
            words = line.partition("#")[0].split()
            if not words:
                continue
            command = self._commands.get(words[0])
            if command is None:
                raise ScenarioError(f"no such command: {line}")
            yield from command(words[1:]) or ()

    # -- nodes and pods ------------------------------------------------------------------------------------------

    def _node(self, words: list[str]) -> None:
        name, fields = words[0], _fields(words[1:])
        node = self._nodes.get(name) or Node(metadata=ObjectMeta(name=name, labels={HOSTNAME: name}))
        room = dict(node.status.allocatable) or {"pods": "110"}
        room.update({key: fields.pop(key) for key in ("cpu", "memory", "pods") if key in fields})
        labels = dict(node.metadata.labels)
        spec = node.spec
        for key, value in fields.items():
            match key:
                case "zone":
                    labels[ZONE] = value
                case "taint":
                    spec = replace(spec, taints=tuple(_taint(one) for one in value.split(",") if one))
                case "cordon":
                    spec = replace(spec, unschedulable=value == "yes")
                case _:
                    labels[key] = value
        status = replace(node.status, allocatable=room)
        self._nodes[name] = replace(node, metadata=replace(node.metadata, labels=labels), spec=spec, status=status)
        self._told.append(NodeSeen(self._nodes[name]))

    def _node_gone(self, words: list[str]) -> None:
        del self._nodes[words[0]]
        self._told.append(NodeGone(words[0]))

    def _pod(self, words: list[str]) -> None:
        name, fields = words[0], _fields(words[1:])
        before = self._pods.get(name)
        if before is None:
            self._uids += 1
            uid = f"uid-{self._uids}"
            before = Pod(
                metadata=ObjectMeta(name=name, namespace="default", uid=uid),
                spec=PodSpec(containers=(Container(name="c"),)),
                status=PodStatus(phase="Pending"),
            )
        pod = before
        for key, value in fields.items():
            pod = _with(pod, key, value, self.now)
        self._pods[name] = pod
        self._refs[name] = ref_of(pod)
        self._told.append(PodSeen(pod))

    def _pod_gone(self, words: list[str]) -> None:
        pod = self._pods.pop(words[0])
        self._told.append(PodGone(ref_of(pod)))

    # -- answers -------------------------------------------------------------------------------------------------

    def _answered(self, words: list[str]) -> tuple[PodRef, int, str]:
        name, rest = words[0], words[1:]
        attempt = self._attempts.get(name, 0)
        if rest and rest[0].startswith("attempt="):
            attempt = int(rest.pop(0).partition("=")[2])
        return self._refs[name], attempt, " ".join(rest)

    def _bind_done(self, words: list[str]) -> None:
        ref, attempt, _ = self._answered(words)
        self._told.append(BindDone(ref, attempt))

    def _bind_failed(self, words: list[str], *, final: bool) -> None:
        ref, attempt, problem = self._answered(words)
        self._told.append(BindFailed(ref, attempt, problem or "failed", final))

    # -- the scheduler -------------------------------------------------------------------------------------------

    def _step(self, words: list[str]) -> Iterator[str]:
        self.now += int(words[0]) if words else 0
        told, self._told = self._told, []
        for effect in self.engine.step(self.now, told):
            if isinstance(effect, Bind | BindVolumes):
                self._attempts[effect.pod.name] = effect.attempt
            if (line := described(effect)) is not None:
                yield line

    def _restart(self, _: list[str]) -> None:
        self.engine = Engine(self._config)
        self._told = [*(NodeSeen(node) for node in self._nodes.values()), *map(PodSeen, self._pods.values())]

    def _configure(self, words: list[str]) -> None:
        config, fields = self._config, _fields(words)
        profile: dict[str, Any] = {"scheduler_name": DEFAULT_SCHEDULER}
        for key, value in fields.items():
            match key:
                case "percentage":
                    config = replace(config, percentage_of_nodes_to_score=int(value))
                case "backoff":
                    initial, _, longest = value.partition("..")
                    config = replace(
                        config, pod_initial_backoff_seconds=int(initial), pod_max_backoff_seconds=int(longest)
                    )
                case "sample":
                    profile["node_sample"] = int(value)
                case "unscored":
                    profile["plugins"] = Plugins(score=PluginSet(disabled=(PluginRef(name="*"),)))
                case _:
                    raise ScenarioError(f"no such setting: {key}")
        self._set_up(with_defaults(replace(config, profiles=(KubeSchedulerProfile(**profile),))))

    def _set_up(self, config: KubeSchedulerConfiguration) -> None:
        self._config = config
        self.engine = Engine(config)

    def _extender(self, words: list[str]) -> None:
        managed = (ExtenderManagedResource(name=GPU),) if "gpu" in words else ()
        verbs: dict[str, Any] = {f"{verb}_verb": verb for verb in VERBS if verb in words}
        url, may_fail = f"http://extender-{len(self._config.extenders)}", "ignorable" in words
        made = Extender(url_prefix=url, weight=1, managed_resources=managed, ignorable=may_fail, **verbs)
        self._set_up(replace(self._config, extenders=(*self._config.extenders, made)))

    def _extender_said(self, words: list[str]) -> None:
        said: dict[str, Any] = {}
        for key, value in _fields(words[1:]).items():
            match key:
                case "left":
                    said["nodes"] = tuple(value.split(",")) if value else ()
                case "scores":
                    pairs = (one.partition(":") for one in value.split(","))
                    said["scores"] = tuple((node, int(score)) for node, _, score in pairs)
                case "victims":
                    pairs = (one.partition(":") for one in value.split(",") if one)
                    said["victims"] = tuple((node, tuple(self._uids_of(pods))) for node, _, pods in pairs)
                case _:
                    said[key] = value
        self._told.append(ExtenderSaid(int(words[0]), **said))

    def _uids_of(self, pods: str) -> Iterator[str]:
        for name in pods.split("+"):
            yield self._refs[name].uid if name in self._refs else name

    def _repeat(self, words: list[str]) -> Iterable[str]:
        said: list[str] = []
        for at in range(int(words[0])):
            said = list(self.tell(" ".join(words[1:]).replace("{}", str(at)).split(";")))
        return said

    def _kept(self) -> Iterator[str]:
        state = self.engine.state
        counts = {
            "pods that wait": len(state.queue),
            "reservations": len(state.reservations),
            "promises": len(state.nominations),
            "evictions": len(state.evictions),
            "timers": len(state.timers),
            "events": len(state.events),
        }
        yield "keeps " + ", ".join(f"{count} {what}" for what, count in counts.items())

    def _where(self) -> Iterator[str]:
        engine = self.engine
        for entry in engine.queue.values():
            promised = engine.state.nominations.get(entry.key)
            reserved = engine.state.reservations.get(entry.key)
            place = entry.state.value + (f" until {entry.retry_at_ms}" if entry.state.value == "backoff" else "")
            more = f", has {reserved.node}" if reserved is not None else ""
            yield f"{entry.ref.name}: {place}{more}" + (f", promised {promised.node}" if promised else "")
        for name, row in engine.cluster.nodes.rows.items():
            here = sorted(engine.cluster.pods.keys[pod].partition("/")[2] for pod in engine.cluster.nodes.pods[row])
            yield f"{name} counts {', '.join(here) or 'nothing'}"


def described(effect: Effect) -> str | None:
    """An effect as a line; None for events, which say what conditions say."""
    match effect:
        case Bind(pod, node, attempt):
            return f"bind {pod.name} to {node} #{attempt}"
        case BindVolumes(pod, node, attempt):
            return f"bind the volumes of {pod.name} on {node} #{attempt}"
        case BindClaims(pod, node, attempt):
            return f"write the devices of {pod.name} on {node} #{attempt}"
        case UnreserveClaims(pod):
            return f"take back the devices of {pod.name}"
        case ReleaseClaim(pod, claim):
            return f"release the claim {claim} for {pod.name}"
        case Evict(victim, node, preemptor):
            return f"evict {victim.name} from {node} for {preemptor.name}"
        case Nominate(pod, node):
            return f"promise {node} to {pod.name}" if node else f"take back the promise to {pod.name}"
        case SetCondition(pod, _, _, reason, message):
            return f"tell {pod.name}: {reason}: {message}"
        case SetGroupCondition(_, name, _, reason, message):
            return f"tell group {name}: {reason}: {message}" if message else f"tell group {name}: {reason}"
        case Report():
            return None
        case AskExtender(ask, extender, verb, pod, nodes):
            return f"ask {ask}: extender {extender} to {verb} for {pod.name}: {', '.join(nodes)}"
        case _:
            assert_never(effect)


def _fields(words: Iterable[str]) -> dict[str, str]:
    fields = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals:
            raise ScenarioError(f"not FIELD=VALUE: {word}")
        fields[key] = value
    return fields


def _taint(text: str) -> Taint:
    key, _, effect = text.partition(":")
    return Taint(key=key, effect=effect or "NoSchedule")


def _with(pod: Pod, key: str, value: str, now: int) -> Pod:
    """The pod with one field another."""
    spec: dict[str, Any] = {}
    status: dict[str, Any] = {}
    metadata: dict[str, Any] = {}
    match key:
        case "cpu" | "memory":
            first = pod.spec.containers[0]
            requests = ResourceRequirements(requests={**first.resources.requests, key: value})
            spec["containers"] = (replace(first, resources=requests),)
        case "gpu":
            first = pod.spec.containers[0]
            requests = ResourceRequirements(requests={**first.resources.requests, GPU: value})
            spec["containers"] = (replace(first, resources=requests),)
        case "scheduler":
            spec["scheduler_name"] = value
        case "port":
            port = ContainerPort(container_port=80, host_port=int(value))
            spec["containers"] = (replace(pod.spec.containers[0], ports=(port,)),)
        case "priority":
            spec["priority"] = int(value)
        case "on":
            spec["node_name"] = value
        case "gate":
            spec["scheduling_gates"] = (PodSchedulingGate(name=value),) if value else ()
        case "tolerates":
            spec["tolerations"] = (*pod.spec.tolerations, Toleration(key=value, operator="Exists"))
        case "near" | "apart" | "spread":
            spec |= _terms(pod, key, value)
        case "phase":
            status["phase"] = value
        case "nominated":
            status["nominated_node_name"] = value
        case "leaving":
            metadata["deletion_timestamp"] = timestamp_text(now)
            if value == "preempted":
                status["conditions"] = (DISRUPTION_TARGET,)
        case _:
            metadata["labels"] = {**pod.metadata.labels, key: value}
    return replace(
        pod,
        metadata=replace(pod.metadata, **metadata),
        spec=replace(pod.spec, **spec),
        status=replace(pod.status, **status),
    )


def _terms(pod: Pod, key: str, app: str) -> dict[str, Any]:
    """`near` and `apart` speak of the pods of an app on one node; `spread`, of those in one zone."""
    selector = LabelSelector(match_labels={"app": app})
    if key == "spread":
        constraint = TopologySpreadConstraint(
            max_skew=1, topology_key=ZONE, when_unsatisfiable="DoNotSchedule", label_selector=selector
        )
        return {"topology_spread_constraints": (constraint,)}
    terms = PodAffinity(
        required_during_scheduling_ignored_during_execution=(
            PodAffinityTerm(label_selector=selector, topology_key=HOSTNAME),
        )
    )
    affinity = pod.spec.affinity or Affinity()
    field = "pod_affinity" if key == "near" else "pod_anti_affinity"
    return {"affinity": replace(affinity, **{field: terms})}
