import pytest

from server.http.world import deployment, told, world

WEB = "/apis/apps/v1/namespaces/default/deployments"
SCALE = f"{WEB}/web/scale"
MERGE = {"Content-Type": "application/merge-patch+json"}


def test_the_scale_of_a_deployment_is_read_patched_and_replaced() -> None:
    async def story() -> None:
        async with world() as here:
            made = (await here.ask("POST", WEB, deployment())).json
            scale = (await here.get(SCALE)).json
            assert (scale["kind"], scale["apiVersion"]) == ("Scale", "autoscaling/v1")
            assert scale["spec"] == {"replicas": 3}
            assert scale["status"] == {"replicas": 0, "selector": "app=web"}
            assert scale["metadata"]["uid"] == made["metadata"]["uid"]
            patched = await here.ask("PATCH", SCALE, {"spec": {"replicas": 5}}, MERGE)
            assert (patched.code, patched.json["spec"]) == (200, {"replicas": 5})
            now = (await here.get(f"{WEB}/web")).json
            assert (now["spec"]["replicas"], now["metadata"]["generation"]) == (5, 2)
            assert [one.get("subresource") for one in now["metadata"]["managedFields"]].count("scale") == 1
            put = await here.ask("PUT", SCALE, {**patched.json, "spec": {"replicas": 0}})
            assert (put.code, put.json["spec"]) == (200, {})
            assert (await here.get(f"{WEB}/web")).json["spec"]["replicas"] == 0

    told(story)


@pytest.mark.parametrize(
    "body, code, message",
    [
        ({}, 400, "the name of the object (web based on URL) was undeterminable: name must be provided"),
        ({"metadata": {"name": "x"}}, 400, "the name of the object (x) does not match the name on the URL (web)"),
        (
            {"metadata": {"name": "web"}, "spec": {"replicas": -1}},
            422,
            'Scale.autoscaling "web" is invalid: spec.replicas: Invalid value: -1: must be greater than or equal to 0',
        ),
        (
            {"metadata": {"name": "web", "resourceVersion": "1"}, "spec": {"replicas": 1}},
            409,
            (
                'Operation cannot be fulfilled on deployments.apps "web": the object has been modified;'
                " please apply your"
                " changes to the latest version and try again"
            ),
        ),
    ],
)
def test_a_scale_that_cannot_be_is_refused(body: object, code: int, message: str) -> None:
    async def story() -> None:
        async with world() as here:
            await here.ask("POST", WEB, deployment())
            refused = await here.ask("PUT", SCALE, body)
            assert (refused.code, refused.message) == (code, message)

    told(story)


def test_the_scale_of_what_is_not_there_is_not_found() -> None:
    async def story() -> None:
        async with world() as here:
            assert (await here.get(SCALE)).message == 'deployments.apps "web" not found'

    told(story)
