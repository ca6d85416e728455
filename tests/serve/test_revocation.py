"""A key that is revoked while the body of its call is on the way does nothing any more."""

import asyncio
import json

import pytest

from support.service import Desk, open_market


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/v1/keys", {"role": "platform"}),
        ("POST", "/v1/markets/feed/decisions", {"request_id": "r"}),
        ("POST", "/v1/markets/feed/settle", None),
    ],
)
def test_a_key_is_checked_again_when_the_body_is_there(method, path, body):
    with Desk() as desk:
        open_market(desk, {"ana": 1})
        key, sent = desk.make_key("platform"), []

        async def attack():
            arrived, begun = asyncio.Event(), asyncio.Event()

            async def receive():
                begun.set()
                await arrived.wait()
                return {"type": "http.request", "body": b"" if body is None else json.dumps(body).encode()}

            async def send(message):
                sent.append(message)

            headers = [(b"authorization", f"Bearer {key}".encode())]
            scope = {"type": "http", "method": method, "path": path, "headers": headers, "query_string": b""}
            call = asyncio.ensure_future(desk.app(scope, receive, send))
            await begun.wait()
            revoked = await desk.http.delete(
                f"/v1/keys/{key.split('_')[1]}", headers={"Authorization": f"Bearer {desk.key}"}
            )
            assert revoked.status_code == 200
            arrived.set()
            await call

        before = len(desk.call("GET", "/v1/keys").json()["keys"])
        desk.runner.run(attack())
        assert sent[0]["status"] == 401
        assert len(desk.call("GET", "/v1/keys").json()["keys"]) == before
        assert desk.call("GET", "/v1/markets/feed/progress").json()["decisions"] == 0
        assert desk.call("GET", "/v1/markets/feed").json()["state"] == "running"
