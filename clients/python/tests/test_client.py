import socket
import time
import unittest

import httpx
from fake import Fake, problem

from smartfeed_client import ApiError, Client


def page(next_, *pins):
    return httpx.Response(200, json={"items": [{"pin": pin} for pin in pins], "next": next_, "degraded": []})


def client_of(fake, **options):
    return Client("http://a.example/base", transport=fake, **options)


class ClientTest(unittest.TestCase):
    def test_feed_reads_all_pages_after_one_visit(self):
        fake = Fake(page("x", "pin:1", "pin:2"), page("y"), page(None, "pin:3"))
        pins = [item["pin"] for item in client_of(fake).feed("user:a/b", feed="plain", limit=2)]
        self.assertEqual(pins, ["pin:1", "pin:2", "pin:3"])
        path = "GET http://a.example/base/v1/users/user%3Aa%2Fb/feed"
        self.assertEqual(
            [f"{request.method} {request.url}" for request in fake.requests],
            [f"{path}?feed=plain&limit=2", f"{path}?cursor=x&limit=2", f"{path}?cursor=y&limit=2"],
        )

    def test_feed_stops_when_the_loop_ends_and_raises_the_error_of_a_page(self):
        fake = Fake(page("x", "pin:1"), page("x", "pin:1"), httpx.Response(503))
        client = client_of(fake)
        next(client.feed("user:a"))
        self.assertEqual(len(fake.requests), 1)
        with self.assertRaises(ApiError) as raised:
            list(client.feed("user:a"))
        self.assertEqual(raised.exception.status, 503)
        self.assertEqual(len(fake.requests), 3, "a page is not requested again")

    def test_requests_have_the_current_token_and_no_parameters_without_a_value(self):
        fake = Fake(page(None), page(None), httpx.Response(200, json={"values": {}}))
        tokens = iter(["t-1", "t-2", "t-3"])
        client = client_of(fake, token=lambda: next(tokens))
        client.visit("user:a")
        client.older("user:a", "x&y")
        client.features({"features": ["f"], "users": ["user:a"]})
        self.assertEqual(
            [(str(request.url), request.headers["Authorization"]) for request in fake.requests],
            [
                ("http://a.example/base/v1/users/user%3Aa/feed", "Bearer t-1"),
                ("http://a.example/base/v1/users/user%3Aa/feed?cursor=x%26y", "Bearer t-2"),
                ("http://a.example/base/v1/features", "Bearer t-3"),
            ],
        )
        self.assertEqual(fake.events()[2], [{"features": ["f"], "users": ["user:a"]}])

    def test_a_visit_with_a_key_and_a_peek(self):
        fake = Fake(page(None, "pin:1"), page(None, "pin:1"))
        client = client_of(fake)
        client.visit_once("user:a/b", "k-1", limit=3)
        client.peek("user:a", feed="plain")
        users = "http://a.example/base/v1/users"
        self.assertEqual(
            [(request.method, str(request.url), request.headers.get("Idempotency-Key")) for request in fake.requests],
            [
                ("POST", f"{users}/user%3Aa%2Fb/visits?limit=3", "k-1"),
                ("GET", f"{users}/user%3Aa/feed?feed=plain&peek=true", None),
            ],
        )

    def test_get_expands_the_path_and_the_query(self):
        fake = Fake(httpx.Response(200, json={"items": []}))
        client_of(fake).get("/v1/pins/{pin}/related", {"pin": "pin:a?b"}, {"limit": 5})
        self.assertEqual(str(fake.requests[0].url), "http://a.example/base/v1/pins/pin%3Aa%3Fb/related?limit=5")

    def test_an_error_has_the_problem_of_the_server(self):
        headers = {"Retry-After": "7", "X-Request-Id": "r-1"}
        fake = Fake(
            problem(503, headers, title="Service Unavailable", detail="later", errors=["a", "b"]),
            httpx.Response(502, content="<p>"),
            httpx.Response(500, content="{", headers={"Content-Type": "application/problem+json"}),
            httpx.Response(302, headers={"Location": "http://elsewhere.example/"}),
        )
        client = client_of(fake, token="canary")
        for status, detail, errors, request_id, retry_after in [
            (503, "later", ["a", "b"], "r-1", 7),
            (502, "", [], "", 0),
            (500, "", [], "", 0),
            (302, "", [], "", 0),
        ]:
            with self.assertRaises(ApiError) as raised:
                client.visit("user:a")
            e = raised.exception
            self.assertEqual(
                (e.status, e.detail, e.errors, e.request_id, e.retry_after), (status, detail, errors, request_id, retry_after)
            )
            self.assertNotIn("canary", str(e))

    def test_a_request_ends_after_the_timeout(self):
        with socket.create_server(("127.0.0.1", 0)) as silent:
            client = Client(f"http://127.0.0.1:{silent.getsockname()[1]}", timeout=0.05)
            began = time.monotonic()
            with self.assertRaises(httpx.TimeoutException):
                client.visit("user:a")
            self.assertLess(time.monotonic() - began, 4, "the default of httpx is five seconds")


if __name__ == "__main__":
    unittest.main()
