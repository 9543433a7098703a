"""Against the `smartfeed dev` whose address is SMARTFEED_TEST_CLIENTS. `make test-clients` sets it."""

import contextlib
import io
import os
import pathlib
import re
import time
import unittest

import httpx

from smartfeed_client import ApiError, Client

BASE_URL = os.environ.get("SMARTFEED_TEST_CLIENTS", "")


class Losing(httpx.HTTPTransport):
    """Replaces the first answer by a 503."""

    def __init__(self):
        super().__init__()
        self.requests = 0

    def handle_request(self, request):
        response = super().handle_request(request)
        self.requests += 1
        if self.requests > 1:
            return response
        response.read()
        return httpx.Response(503)


@unittest.skipUnless(BASE_URL, "SMARTFEED_TEST_CLIENTS is not set")
class DevTest(unittest.TestCase):
    def eventually(self, what, condition):
        end = time.monotonic() + 30
        while not condition():
            self.assertLess(time.monotonic(), end, f"no {what} within 30 s")
            time.sleep(0.05)

    def test_a_batch_whose_answer_is_lost_has_one_effect(self):
        losing = Losing()
        run = time.time_ns()
        reader, author = f"user:py-reader-{run}", f"user:py-author-{run}"
        want = [f"pin:py-{run}-{i}" for i in range(5)]
        rejected = []
        with Client(BASE_URL, transport=losing) as client, client.publisher(on_rejected=rejected.append) as publisher:
            publisher.publish({"stream": "follows", "actor": reader, "verb": "follow", "object": author})
            for pin in want:
                event = {"stream": "pins", "actor": author, "verb": "create", "object": pin, "title": "Tea"}
                publisher.publish({**event, "interests": ["interest:tea"]})
                publisher.publish({"stream": "actions", "actor": reader, "verb": "save", "object": pin, "surface": "test"})
        self.assertEqual((losing.requests, rejected), (2, []), "the batch is sent twice")

        with Client(BASE_URL) as client:
            new = "/v1/users/{user}/feed/new"
            self.eventually("five new pins", lambda: client.get(new, {"user": reader})["count"] == 5)
            self.assertEqual(sorted(item["pin"] for item in client.visit(reader)["items"]), want)
            self.assertEqual(sorted(item["pin"] for item in client.feed(reader, limit=2)), want, "each pin once")
            cursor = client.visit(reader, limit=2)["next"]
            with self.assertRaises(ApiError) as raised:
                client.older(author, cursor)
            self.assertEqual(raised.exception.status, 400, "the cursor of another user")
            request = {"features": ["interests_24h"], "users": [reader]}
            saves = {"interests_24h": {"interest:tea": 5}}
            self.eventually("five saves", lambda: client.features(request)["values"][reader] == saves)

    def test_the_server_names_invalid_events(self):
        rejected = []
        with Client(BASE_URL) as client, client.publisher(on_rejected=rejected.append) as publisher:
            publisher.publish({"stream": "pins", "actor": "user:a", "verb": "create", "object": "pin:valid"})
            publisher.publish({"stream": "pins", "actor": "user:a", "verb": "bake", "object": "pin:invalid"})
        self.assertEqual([r.invalid for r in rejected], [False, True])
        self.assertIn("bake", str(rejected[1].reason))

    def test_the_example_of_the_readme_runs(self):
        readme = (pathlib.Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")
        example = re.search(r"```python\n(.*?)```", readme, re.DOTALL)[1]
        with contextlib.redirect_stdout(io.StringIO()) as out:
            exec(example.replace("http://127.0.0.1:8080", BASE_URL), {})
        self.assertIn("pin:gongfu-py following", out.getvalue())


if __name__ == "__main__":
    unittest.main()
