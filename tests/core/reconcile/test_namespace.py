"""Namespaces that are being deleted: emptied, pods first, then gone."""

from core.reconcile.world import Raw, World, condition, manifest, template, workload
from situate.core.reconcile.effects import DeleteObject


def space(world: World, name: str = "default", **meta: object) -> None:
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, **meta}}
    world.create({**body, "spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Active"}})


def config(name: str, namespace: str = "default") -> Raw:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": namespace}}


def end(world: World) -> None:
    world.delete("Namespace", "default", namespace="")


def test_a_namespace_that_stays_is_left_alone() -> None:
    world = World()
    space(world)
    world.create(config("c"))
    world.settle()
    assert ("ServiceAccount", "default", "default") in world.bodies
    assert world.settle() == 0


def test_everything_in_it_goes_and_then_it_does_and_nothing_elsewhere() -> None:
    world = World()
    space(world)
    space(world, "other")
    world.create(config("c"))
    world.create(config("c", "other"))
    world.create(workload("Deployment", replicas=3))
    world.create(manifest("Job", "j", template=template(app="j", restartPolicy="Never")))
    world.run(5)
    end(world)
    world.run(8)
    assert sorted(world.bodies) == [
        ("ConfigMap", "other", "c"),
        ("Namespace", "", "other"),
        ("ServiceAccount", "other", "default"),
    ]


def test_pods_go_before_what_they_may_need_until_the_end() -> None:
    world = World(grace=2)
    space(world)
    world.create(config("c"))
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "default"}, "spec": {}}
    world.create({**pod, "spec": {"nodeName": "n1"}, "status": {"phase": "Running"}})
    end(world)
    world.run(1)
    assert ("ConfigMap", "default", "c") in world.bodies
    world.run(6)
    assert world.deleted == ["Pod/p", "ConfigMap/c", "Namespace/default"]


def test_what_holds_it_up_is_said() -> None:
    world = World()
    space(world)
    held = config("c")
    held["metadata"]["finalizers"] = ["example.com/held"]
    world.create(held)
    end(world)
    world.settle()
    body = world.find("Namespace", "default", "")
    assert body["status"]["phase"] == "Terminating"
    remaining = condition(body, "NamespaceContentRemaining")
    assert remaining["status"] == "True"
    assert remaining["message"] == "Some resources are remaining: configmaps. has 1 resource instances"
    finalizers = condition(body, "NamespaceFinalizersRemaining")
    text = "Some content in the namespace has finalizers remaining: example.com/held in 1 resource instances"
    assert finalizers["message"] == text
    assert condition(body, "NamespaceDeletionDiscoveryFailure")["status"] == "False"
    world.patch("ConfigMap", "c", {"metadata": {"finalizers": None}})
    world.settle()
    assert world.bodies == {}


def test_a_thing_that_is_going_already_is_not_deleted_again() -> None:
    world = World()
    space(world)
    held = config("c")
    held["metadata"]["finalizers"] = ["example.com/held"]
    world.create(held)
    end(world)
    world.one_pass()
    world.one_pass()
    left = world.namespace_controller(("Namespace", "", "default")).effects
    assert not any(isinstance(effect, DeleteObject) for effect in left)


def test_a_finalizer_of_somebody_else_keeps_the_namespace() -> None:
    world = World()
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}}
    world.create({**body, "spec": {"finalizers": ["kubernetes", "example.com/x"]}})
    end(world)
    world.settle()
    assert world.find("Namespace", "default", "")["spec"]["finalizers"] == ["example.com/x"]
