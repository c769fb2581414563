import pytest

from server.http.world import told, world

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"


def test_the_version_is_no_pre_release_which_charts_would_refuse() -> None:
    async def story() -> None:
        async with world() as here:
            version = (await here.get("/version")).json
            assert (version["major"], version["minor"]) == ("1", "36")
            assert version["gitVersion"] == "v1.36.4"
            assert version["gitCommit"].startswith("situate-")

    told(story)


@pytest.mark.parametrize("path", ["/api", "/apis", "/openapi/v3", "/openapi/v3/apis/apps/v1", "/api/v1"])
def test_a_client_that_has_a_document_is_not_sent_it_again(path: str) -> None:
    async def story() -> None:
        async with world() as here:
            first = await here.get(path, AGGREGATED)
            assert first.code == 200
            headers = {"Accept": AGGREGATED, "If-None-Match": first.headers["etag"]}
            again = await here.ask("GET", path, headers=headers)
            assert (again.code, again.body) == (304, b"")
            other = await here.ask("GET", path, headers={"Accept": AGGREGATED, "If-None-Match": '"x"'})
            assert other.body == first.body

    told(story)


def test_aggregated_discovery_repeats_what_was_asked_in_its_type() -> None:
    async def story() -> None:
        async with world() as here:
            reply = await here.get("/apis", AGGREGATED)
            kind = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
            assert (reply.headers["content-type"], reply.json["kind"]) == (kind, "APIGroupDiscoveryList")
            assert (await here.get("/apis")).json["kind"] == "APIGroupList"

    told(story)


@pytest.mark.parametrize("path", ["/foo", "/openapi/v3/foo", "/apis/foo", "/api/v2", "/api/v1/watch/pods"])
def test_what_is_not_there_is_said_so_with_a_status(path: str) -> None:
    async def story() -> None:
        async with world() as here:
            reply = await here.get(path)
            assert (reply.code, reply.message) == (404, "the server could not find the requested resource")

    told(story)


def test_documents_are_only_read() -> None:
    async def story() -> None:
        async with world() as here:
            assert (await here.ask("POST", "/version", {})).code == 405
            head = await here.ask("HEAD", "/version")
            assert (head.code, head.body) == (200, b"")
            assert (await here.ask("HEAD", "/api/v1/pods")).code == 405

    told(story)


def test_metrics_count_what_was_asked() -> None:
    async def story() -> None:
        async with world() as here:
            await here.get("/api/v1/pods")
            await here.get("/api/v1/nonsense")
            text = (await here.get("/metrics")).body.decode()
            labels = 'group="",resource="pods",scope="cluster",subresource="",verb="LIST",version="v1"'
            assert f'apiserver_request_total{{code="200",{labels}}} 1.0' in text
            assert f"apiserver_request_duration_seconds_count{{{labels}}} 1.0" in text
            assert 'apiserver_current_inflight_requests{request_kind="readOnly"} 1.0' in text
            assert "situate_apiserver_panics_total 0.0" in text
            assert "nonsense" not in text

    told(story)


def test_the_older_openapi_document_is_there_in_both_notations() -> None:
    async def story() -> None:
        async with world() as here:
            plain = await here.get("/openapi/v2")
            assert (plain.code, plain.json["swagger"]) == (200, "2.0")
            assert "io.k8s.api.core.v1.Pod" in plain.json["definitions"]
            asked = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
            packed = await here.get("/openapi/v2", asked)
            assert packed.headers["content-type"] == asked.replace("@", ".")
            assert packed.body.startswith(b"\x0a\x032.0\x12\x12\x0a\x0aKubernetes\x12\x041.36")
            assert len({plain.headers["etag"], packed.headers["etag"]}) == 2

    told(story)


@pytest.mark.parametrize("path", ["/api/v1/endpoints", "/api/v1/namespaces/default/endpoints/none"])
def test_whoever_asks_for_endpoints_is_warned(path: str) -> None:
    async def story() -> None:
        async with world() as here:
            warned = "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"
            assert warned in (await here.get(path)).headers["warning"]
            assert "warning" not in (await here.get("/api/v1/services")).headers

    told(story)


@pytest.mark.parametrize("path", ["/api/v1/nope", "/api/v1/namespaces/default/pods/x/nope", "/apis/apps/v1/nope/x"])
def test_the_details_of_a_path_that_is_not_served_are_there_and_empty(path: str) -> None:
    async def story() -> None:
        async with world() as here:
            status = (await here.get(path)).json
            assert (status["code"], status["reason"], status["details"]) == (404, "NotFound", {})

    told(story)
