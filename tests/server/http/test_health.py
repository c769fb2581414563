from server.http.world import told, world
from situate.loop.health import Check


def test_health_is_ok_or_says_which_check_failed() -> None:
    problems = {"store": ""}

    async def story() -> None:
        async with world(checks={"readyz": [Check("store", lambda: problems["store"])]}) as here:
            assert (await here.get("/readyz")).body == b"ok"
            assert (await here.get("/readyz?verbose")).body == b"[+]ping ok\n[+]store ok\nreadyz check passed\n"
            problems["store"] = "gone"
            failed = await here.get("/readyz")
            assert failed.code == 500
            assert failed.body == b"[+]ping ok\n[-]store failed: reason withheld\nreadyz check failed\n"
            assert (await here.get("/readyz?exclude=store")).code == 200
            assert (await here.get("/readyz/store")).body == b"internal server error: gone\n"
            assert (await here.get("/livez")).code == 200
            assert (await here.get("/livez/ping")).body == b"ok"
            assert (await here.get("/livez/nope")).code == 404

    told(story)
