"""Binding: one transaction that checks everything, and says which check failed."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from server.placing.conftest import Tell
from server.placing.witness import witnessed
from server.placing.world import World, pod_object
from server.placing.world import tell as in_memory
from situate.server.errors import StatusError
from situate.server.http.ports import CreateRequest
from situate.server.placing.bind_transaction import LEASE, LEASES, PODS
from situate.server.placing.binding import BindRequest, with_condition
from situate.server.placing.decisions import PLACEMENT_DECISIONS
from situate.server.placing.specials import specials
from situate.server.placing.write_request import CacheReader
from situate.server.registry.stored_object import StoredObject
from situate.server.requests import SYSTEM, Caller, Object, Target, WriteOptions
from situate.server.resources import BY_KIND
from situate.store.transactions import Delete, Guard, Put, Write

BINDINGS = BY_KIND["v1", "Binding"]


async def refusal(call: Awaitable[object]) -> StatusError:
    with pytest.raises(StatusError) as caught:
        await call
    return caught.value


async def lease(world: World, term: int) -> None:
    def change(obj: Object, _held: StoredObject) -> Object:
        obj["spec"]["leaseTransitions"] = term
        return obj

    meta = {"namespace": LEASE[0], "name": LEASE[1]}
    body = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": meta, "spec": {"leaseTransitions": 0}}
    if world.registry.cache.get(LEASES, *LEASE) is None:
        await world.create(body)
    await world.registry.modify(Target(LEASES, *LEASE), change, SYSTEM)


def test_a_bind_leaves_the_pod_before_it_as_it_was(tell: Tell) -> None:
    async def story(world: World) -> None:
        await world.node()
        await world.pod()
        unscheduled = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
        await world.report("p", "Pending", conditions=[unscheduled], nominatedNodeName="n1")
        was = world.read("p")
        seen: list[Object | None] = []

        def extra(_cache: CacheReader, before: Object | None, after: Object | None) -> tuple[list[Guard], list[Write]]:
            assert after is not None
            assert [one["status"] for one in after["status"]["conditions"]] == ["True"]
            seen.append(before)
            return [], []

        await world.binder.bind("default", "p", "n1", extra_writes=extra)
        assert [before and before["status"] for before in seen] == [was["status"]]
        assert [before and before["spec"] for before in seen] == [was["spec"]]

    tell(story)


def test_a_bind_writes_the_pod_the_snapshot_and_the_decision_at_one_revision(tell: Tell) -> None:
    async def story(world: World) -> None:
        await world.node()
        before = await world.pod()
        bound = await world.binder.bind("default", "p", "n1", uid=before.uid, scheduler="mine")
        pod, decision = world.read("p"), world.decision("p")
        assert pod["spec"]["nodeName"] == "n1"
        assert pod["status"]["conditions"] == [
            {
                "type": "PodScheduled",
                "status": "True",
                "lastProbeTime": None,
                "lastTransitionTime": "2023-11-14T22:13:20Z",
            }
        ]
        ledger = world.ledger()
        assert ledger is not None
        assert ledger.allocated == {"cpu": 1000, "memory": 1 << 30, "pods": 1}
        assert [(one.name, one.uid, one.binding_version) for one in ledger.pods] == [("p", before.uid, 1)]
        assert decision is not None
        assert (decision.spec.pod_uid, decision.spec.node, decision.spec.binding_version) == (before.uid, "n1", 1)
        assert (decision.spec.scheduler, decision.phase) == ("mine", "bound")
        reading = await world.store.read(
            ["/objects/core/pods/default/p", "/objects/situate.dev/nodesnapshots/n1"]
            + ["/objects/situate.dev/placementdecisions/default/p"]
        )
        assert {entry and entry.modified for entry in reading.entries} == {bound.revision}

    tell(story)


EXTENDED = {
    "resourceClaimName": "c",
    "requestMappings": [{"containerName": "main", "resourceName": "example.com/gpu", "requestName": "r"}],
}


@pytest.mark.parametrize("served", [True, False])
def test_an_extended_resource_that_devices_serve_is_not_asked_of_the_node(tell: Tell, served: bool) -> None:
    async def story(world: World) -> None:
        await world.node()
        body = pod_object()
        asked = {"example.com/gpu": "1"}
        resources = body["spec"]["containers"][0]["resources"]
        body["spec"]["containers"][0]["resources"] = {"requests": {**resources["requests"], **asked}, "limits": asked}
        await world.create(body)
        target = Target(PODS, "default", "p")
        if not served:
            error = await refusal(world.binder.bind("default", "p", "n1"))
            assert "example.com/gpu: asked 1, free 0" in error.message
            return

        def serve(pod: Object, _held: StoredObject) -> Object:
            pod["status"]["extendedResourceClaimStatus"] = EXTENDED
            return pod

        await world.registry.modify(target, serve, SYSTEM)
        await world.binder.bind("default", "p", "n1")
        ledger = world.ledger()
        assert ledger is not None
        assert ledger.allocated == {"cpu": 1000, "memory": 1 << 30, "pods": 1}

        # What is reported later changes nothing of it.
        await world.report("p", "Running", extendedResourceClaimStatus={**EXTENDED, "requestMappings": []})
        assert world.read("p")["status"]["extendedResourceClaimStatus"] == EXTENDED
        assert world.ledger() == ledger
        await world.delete_pod("p")
        ledger = world.ledger()
        assert ledger is not None
        assert not ledger.pods

    tell(story)


def test_a_bind_clears_the_nomination_and_what_was_said_of_waiting(tell: Tell) -> None:
    async def story(world: World) -> None:
        await world.node()
        await world.pod()

        def waits(pod: Object, _held: StoredObject) -> Object:
            said = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no"}
            pod["status"] = {**pod["status"], "nominatedNodeName": "n1", "conditions": [said]}
            return pod

        await world.registry.modify(Target(PODS, "default", "p"), waits, SYSTEM)
        decision = world.decision("p")
        assert decision is not None
        assert (decision.phase, decision.spec.node) == ("reserved", "n1")
        await world.binder.bind("default", "p", "n1")
        status = world.read("p")["status"]
        assert "nominatedNodeName" not in status
        assert [(one["status"], one.get("reason")) for one in status["conditions"]] == [("True", None)]
        decision = world.decision("p")
        assert decision is not None
        assert [one.phase for one in decision.status.phases] == ["reserved", "bound"]

    tell(story)


def test_the_same_bind_again_has_the_same_answer(tell: Tell) -> None:
    async def story(world: World) -> None:
        await world.node()
        uid = (await world.pod()).uid
        first = await world.binder.bind("default", "p", "n1", uid=uid, binding_version=1)
        again = await world.binder.bind("default", "p", "n1", uid=uid, binding_version=1, resource_version="1")
        assert again.revision == first.revision
        assert await world.store.revision() == first.revision

    tell(story)


def test_only_what_will_be_bound_is_remembered_as_it_was_written(tell: Tell) -> None:
    async def story(world: World) -> None:
        node = await world.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}})
        pod = await world.pod()
        recent = world.registry._context.recent_pods
        assert recent.take(node) is None
        assert recent.take(pod) == pod.object(PODS)

    tell(story)


def test_a_bind_of_an_assigned_pod_is_refused_in_kubernetes_words(tell: Tell) -> None:
    async def story(world: World) -> None:
        await world.node("n1")
        await world.node("n2")
        uid = (await world.pod()).uid
        await world.binder.bind("default", "p", "n1")
        no = await refusal(world.binder.bind("default", "p", "n1"))
        assert no.code == 409
        expected = 'Operation cannot be fulfilled on pods/binding "p": pod p is already assigned to node "n1"'
        assert no.message == expected
        elsewhere = await refusal(world.binder.bind("default", "p", "n2", uid=uid, binding_version=1))
        assert elsewhere.message == expected
        later = await refusal(world.binder.bind("default", "p", "n1", uid=uid, binding_version=2))
        assert later.message == expected

    tell(story)


Prepare = Callable[[World], Awaitable[None]]


async def _nothing(world: World) -> None:
    """As it is."""


async def _going(world: World) -> None:
    await world.registry.modify(
        Target(PODS, "default", "p"),
        lambda pod, _: {**pod, "metadata": {**pod["metadata"], "finalizers": ["example.com/x"]}},
        SYSTEM,
    )
    await world.delete_pod("p", grace_s=30)


async def _gated(world: World) -> None:
    await world.registry.modify(
        Target(PODS, "default", "p"),
        lambda pod, _: {**pod, "spec": {**pod["spec"], "schedulingGates": [{"name": "g"}]}},
        SYSTEM,
    )


async def _cordoned(world: World) -> None:
    await world.change_node("n1", unschedulable=True)


async def _tainted(world: World) -> None:
    await world.change_node("n1", taints=[{"key": "gpu", "value": "yes", "effect": "NoSchedule"}])


async def _full(world: World) -> None:
    await world.report_node("n1", {"cpu": "500m", "memory": "8Gi", "pods": "0"})


async def _second_term(world: World) -> None:
    await lease(world, 2)


@pytest.mark.parametrize(
    "prepare, asked, text, cause",
    [
        pytest.param(_going, {}, "pod p is being deleted, cannot be assigned to a host", "BeingDeleted", id="going"),
        pytest.param(_gated, {}, "pod p has non-empty .spec.schedulingGates", "SchedulingGated", id="gated"),
        pytest.param(
            _nothing,
            {"binding_version": 2},
            "binding version 2 is stale: the next binding of pod p is version 1",
            "StaleBindingVersion",
            id="another binding version",
        ),
        pytest.param(
            _second_term,
            {"term": 1},
            "term 1 is stale: the scheduler's lease is in term 2",
            "StaleTerm",
            id="an older term",
        ),
        pytest.param(
            _nothing, {"term": 1}, "term 1 is stale: nobody holds the scheduler's lease", "StaleTerm", id="no term"
        ),
        pytest.param(_nothing, {"node": "n9"}, 'node "n9" not found', "IneligibleNode", id="a node that is not there"),
        pytest.param(_cordoned, {}, 'node "n1" is not eligible: it is unschedulable', "IneligibleNode", id="cordoned"),
        pytest.param(
            _tainted,
            {},
            'node "n1" is not eligible: it has the taint gpu=yes:NoSchedule, which the pod does not tolerate',
            "IneligibleNode",
            id="tainted",
        ),
        pytest.param(
            _full,
            {},
            'node "n1" has no room: pods: asked 1, free 0, allocatable 0; cpu: asked 1, free 500m, allocatable 500m',
            "FullNode",
            id="full",
        ),
    ],
)
def test_a_refusal_is_a_conflict_that_names_the_check(
    tell: Tell, prepare: Prepare, asked: dict[str, object], text: str, cause: str
) -> None:
    async def story(world: World) -> None:
        await world.node()
        await world.pod()
        await prepare(world)
        before = await world.store.revision()
        no = await refusal(world.binder.bind("default", "p", **{"node": "n1", **asked}))  # type: ignore[arg-type]
        assert (no.code, no.reason) == (409, "Conflict")
        assert no.message == f'Operation cannot be fulfilled on pods/binding "p": {text}'
        assert {one.reason for one in no.causes} == {cause}
        assert await world.store.revision() == before, "nothing was written"

    tell(story)


def test_another_uid_or_revision_is_refused(tell: Tell) -> None:
    async def story(world: World) -> None:
        await world.node()
        held = await world.pod()
        no = await refusal(world.binder.bind("default", "p", "n1", uid="other"))
        assert no.code == 409
        assert f"UID in precondition: other, UID in object meta: {held.uid}" in no.message
        no = await refusal(world.binder.bind("default", "p", "n1", resource_version="1"))
        assert no.code == 409
        assert f"ResourceVersion in precondition: 1, ResourceVersion in object meta: {held.revision}" in no.message
        assert (await refusal(world.binder.bind("default", "none", "n1"))).code == 404

    tell(story)


def test_host_ports_are_given_once(tell: Tell) -> None:
    async def story(world: World) -> None:
        await world.node()
        await world.pod("a", ports=[{"containerPort": 80, "hostPort": 80}])
        await world.pod("b", ports=[{"containerPort": 80, "hostPort": 80, "hostIP": "10.0.0.1"}])
        await world.binder.bind("default", "a", "n1")
        no = await refusal(world.binder.bind("default", "b", "n1"))
        assert "host port TCP/80/10.0.0.1 is taken by pod default/a" in no.message

    tell(story)


def test_the_current_term_binds(tell: Tell) -> None:
    async def story(world: World) -> None:
        await world.node()
        await world.pod()
        await lease(world, 3)
        await world.binder.bind("default", "p", "n1", term=3)
        assert world.on() == ["p"]

    tell(story)


def test_of_many_binds_to_one_node_at_once_as_many_succeed_as_there_is_room_for(tell: Tell) -> None:
    async def story(world: World) -> None:
        await world.node(cpu="4")
        await asyncio.gather(*[world.pod(f"p{at}") for at in range(12)])
        answers = await asyncio.gather(
            *[world.binder.bind("default", f"p{at}", "n1") for at in range(12)], return_exceptions=True
        )
        refused = [one for one in answers if isinstance(one, StatusError)]
        assert len(refused) == 8
        assert all("cpu: asked 1, free 0, allocatable 4" in one.message for one in refused)
        assert len(world.on()) == 4
        assert (await witnessed(world.store)).problems == []

    tell(story)


def test_binds_made_together_have_every_check_and_an_answer_each(tell: Tell) -> None:
    async def story(world: World) -> None:
        await world.node(cpu="2")
        await world.node("n2", unschedulable=True)
        await world.node("n3")
        for at in range(6):
            await world.pod(f"p{at}")
        await world.binder.bind("default", "p5", "n3")
        nodes = ["n1", "n1", "n1", "n2", "n3", "n1", "none"]
        names = ["p0", "p1", "p2", "p3", "p4", "p5", "p3"]
        asked = [BindRequest(namespace="default", name=one, node=on) for one, on in zip(names, nodes, strict=True)]
        before = await world.store.revision()
        outcomes = await world.binder.bind_each(asked)
        assert [one is None for one in outcomes] == [True, True, False, False, True, False, False]
        assert all(isinstance(one, StatusError) for one in outcomes if one is not None)
        assert len(world.on()) == 2
        assert await world.store.revision() == before + 3, "each bind has a revision of its own"
        assert (await witnessed(world.store)).problems == []

    tell(story)


def test_a_bind_made_twice_among_others_has_the_same_answer_and_writes_nothing(tell: Tell) -> None:
    async def story(world: World) -> None:
        await world.node()
        pod = await world.pod()
        asked = BindRequest(namespace="default", name="p", node="n1", uid=pod.uid, binding_version=1)
        assert await world.binder.bind_each([asked]) == [None]
        before = await world.store.revision()
        assert await world.binder.bind_each([asked, asked]) == [None, None]
        assert await world.store.revision() == before

    tell(story)


def test_two_callers_that_bind_to_the_same_nodes_together_do_not_wait_for_each_other(tell: Tell) -> None:
    async def story(world: World) -> None:
        for node in ("n1", "n2", "n3"):
            await world.node(node, cpu="4")
        for at in range(12):
            await world.pod(f"p{at}")

        def asked(first: int) -> list[BindRequest]:
            return [BindRequest(namespace="default", name=f"p{first + at}", node=f"n{at % 3 + 1}") for at in range(6)]

        async with asyncio.timeout(30):
            outcomes = await asyncio.gather(world.binder.bind_each(asked(0)), world.binder.bind_each(asked(6)))
        assert [one for each in outcomes for one in each] == [None] * 12
        assert (await witnessed(world.store)).problems == []

    tell(story)


def test_two_servers_on_one_store_do_not_overfill_a_node(tell: Tell) -> None:
    async def story(world: World) -> None:
        other = World(world.store)
        await other.registry.start()
        await world.node(cpu="8")
        await asyncio.gather(*[world.pod(f"p{at}") for at in range(20)])
        await other.registry.cache.wait_until_fresh()
        asked = [(world if at % 2 else other).binder.bind("default", f"p{at}", "n1") for at in range(20)]
        answers = await asyncio.gather(*asked, return_exceptions=True)
        bound = [one for one in answers if not isinstance(one, BaseException)]
        assert len(bound) == len(world.on()) <= 8
        assert all(isinstance(one, StatusError) and one.code == 409 for one in answers if one not in bound)
        assert (await witnessed(world.store)).problems == []
        await other.registry.aclose()

    tell(story)


def test_a_pod_that_the_cache_has_not_seen_yet_has_every_check_of_a_bind(tell: Tell) -> None:
    async def story(world: World) -> None:
        other = World(world.store)
        await other.registry.start()
        await world.node(unschedulable=True)
        await other.registry.cache.wait_until_fresh()
        await world.pod()
        no = await refusal(other.binder.bind("default", "p", "n1"))
        assert "it is unschedulable" in no.message
        await other.registry.aclose()

    tell(story)


def test_a_dry_run_checks_and_writes_nothing(tell: Tell) -> None:
    async def story(world: World) -> None:
        await world.node(cpu="1")
        await world.pod("a")
        await world.pod("b", cpu="2")
        before = await world.store.revision()
        await world.binder.bind("default", "a", "n1", dry_run=True)
        assert "no room" in (await refusal(world.binder.bind("default", "b", "n1", dry_run=True))).message
        assert await world.store.revision() == before

    tell(story)


def binding(name: str = "p", node: str = "n1", **meta: object) -> Object:
    target = {"kind": "Node", "name": node}
    return {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name, **meta}, "target": target}


def test_a_binding_that_any_scheduler_posts_is_a_bind(tell: Tell) -> None:
    async def story(world: World) -> None:
        await world.node()
        await world.pod()
        calls, caller = specials(world.binder, world.evictor), Caller("system:kube-scheduler")
        body = binding(annotations={"a": "1", "situate.dev/binding-version": "1"}, labels={"zone": "z"})
        asked = CreateRequest(Target(PODS, "default", "p", "binding"), body, caller)
        answer = await calls["", "pods", "binding"].call(asked)
        assert (answer["kind"], answer["status"], answer["code"]) == ("Status", "Success", 201)
        meta = world.read("p")["metadata"]
        assert (meta["annotations"], meta["labels"]) == ({"a": "1"}, {"zone": "z"})
        decision = world.decision("p")
        assert decision is not None
        assert decision.spec.scheduler == "system:kube-scheduler"
        await world.pod("q")
        await calls["", "bindings", ""].call(CreateRequest(Target(BINDINGS, "default"), binding("q"), caller))
        assert world.on() == ["p", "q"]

    tell(story)


@pytest.mark.parametrize(
    "body, code, text",
    [
        pytest.param(binding("other"), 400, "name in URL does not match name in Binding object", id="another name"),
        pytest.param(binding(node=""), 422, "target.name: Required value", id="nowhere"),
        pytest.param(
            {**binding(), "target": {"kind": "Pod", "name": "n1"}},
            422,
            'Unsupported value: "Pod"',
            id="no node's kind",
        ),
        pytest.param(binding(namespace="x"), 400, "does not match the namespace", id="another namespace"),
        pytest.param(
            binding(annotations={"situate.dev/term": "x"}), 400, '"x" is not a number', id="a term that is no number"
        ),
    ],
)
def test_a_binding_that_makes_no_sense_is_refused(body: Object, code: int, text: str) -> None:
    async def story(world: World) -> None:
        await world.node()
        await world.pod()
        asked = CreateRequest(Target(PODS, "default", "p", "binding"), body, SYSTEM)
        no = await refusal(world.binder.create_binding(asked))
        assert no.code == code
        assert text in no.message

    in_memory(story)


def test_a_bind_whose_decision_cannot_be_read_is_not_taken_for_the_same(tell: Tell) -> None:
    async def story(world: World) -> None:
        await world.node()
        uid = (await world.pod()).uid
        await world.binder.bind("default", "p", "n1", uid=uid, binding_version=1)
        held = world.registry.cache.get(PLACEMENT_DECISIONS, "default", "p")
        assert held is not None
        for write in (Put(held.key, held.value.replace(b'"spec":', b'"no spec":')), Delete(held.key)):
            await world.store.commit([], [write])
            await world.registry.cache.wait_until_fresh()
            no = await refusal(world.binder.bind("default", "p", "n1", uid=uid, binding_version=1))
            assert "already assigned" in no.message

    tell(story)


NEW = {"type": "Ready", "status": "True"}


@pytest.mark.parametrize(
    "held, said, made",
    [
        pytest.param({"conditions": []}, NEW, {**NEW, "lastTransitionTime": "now"}, id="the first"),
        pytest.param({}, NEW, {**NEW, "lastTransitionTime": "now"}, id="the first of all"),
        pytest.param(
            {"conditions": [{**NEW, "status": "False", "lastTransitionTime": "then"}]},
            NEW,
            {**NEW, "lastTransitionTime": "now"},
            id="another status",
        ),
        pytest.param(
            {"conditions": [{**NEW, "lastTransitionTime": "then"}]},
            {**NEW, "reason": "Because", "message": ""},
            {**NEW, "lastTransitionTime": "then", "reason": "Because"},
            id="another reason",
        ),
        pytest.param(
            {"conditions": [{**NEW, "reason": "Because"}]},
            NEW,
            {**NEW, "lastTransitionTime": "now"},
            id="without a time",
        ),
        pytest.param(
            {"conditions": [{**NEW, "lastTransitionTime": "then"}]},
            {**NEW, "observedGeneration": 3},
            {**NEW, "observedGeneration": 3, "lastTransitionTime": "then"},
            id="another generation",
        ),
    ],
)
@pytest.mark.parametrize("probed", [True, False])
def test_a_condition_is_set_and_its_time_changes_with_its_status(
    held: Object, said: Object, made: Object, probed: bool
) -> None:
    other = {"type": "Other", "status": "True"}
    status: Object = {**held, "conditions": [other, *held["conditions"]]} if held else {}
    assert with_condition(status, said, "now", probed=probed)
    expected = {**made, "lastProbeTime": None} if probed else made
    assert status["conditions"] == ([other, expected] if held else [expected])
    assert not with_condition(status, said, "later", probed=probed), "the same again"


@pytest.mark.parametrize("given", ["", "0", "17"])
def test_a_binding_that_is_posted_may_name_a_term(given: str) -> None:
    async def story(world: World) -> None:
        await world.node()
        await world.pod()
        await lease(world, 17)
        body = binding(annotations={"situate.dev/term": given} if given else {})
        asked = CreateRequest(Target(PODS, "default", "p", "binding"), body, SYSTEM)
        if given == "0":
            assert "term 0 is stale" in (await refusal(world.binder.create_binding(asked))).message
        else:
            await world.binder.create_binding(asked)
            assert "annotations" not in world.read("p")["metadata"], "ours are not written on the pod"

    in_memory(story)


@pytest.mark.parametrize("way", ["of the call", "of the request"])
def test_a_posted_dry_run_binds_nothing(way: str) -> None:
    async def story(world: World) -> None:
        await world.node()
        await world.pod()
        options = WriteOptions(dry_run=way == "of the request")
        target = Target(PODS, "default", "p", "binding")
        asked = CreateRequest(target, binding(), SYSTEM, options, dry_run=way == "of the call")
        await world.binder.create_binding(asked)
        assert world.on() == []

    in_memory(story)
