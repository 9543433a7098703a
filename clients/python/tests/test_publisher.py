import threading
import time
import unittest
import unittest.mock

import httpx
from fake import Fake, problem

from smartfeed_client import ApiError, Client


def pin(name):
    return {"stream": "pins", "actor": "user:a", "verb": "create", "object": f"pin:{name}"}


def publisher_of(fake, **options):
    """Returns a publisher, and the list of the rejections."""
    rejected = []
    return Client("http://a.example", transport=fake).publisher(on_rejected=rejected.append, **options), rejected


class Held(Fake):
    """Answers a request when it is released."""

    def __init__(self):
        super().__init__()
        self.arrived = threading.Semaphore(0)
        self.released = threading.Semaphore(0)

    def handle_request(self, request):
        self.arrived.release()
        self.released.acquire()
        return super().handle_request(request)


class PublisherTest(unittest.TestCase):
    def test_a_request_has_at_most_max_events_and_ends_at_max_bytes(self):
        for options, want in [
            ({}, ["a b c d e"]),
            ({"max_events": 2}, ["a b", "c d", "e"]),
            ({"max_bytes": 200}, ["a b", "c d", "e"]),
        ]:
            fake = Fake()
            publisher, rejected = publisher_of(fake, **options)
            with publisher, unittest.mock.patch("time.time_ns", return_value=time.time_ns()):
                ids = [publisher.publish(pin(name)) for name in "abcde"]
            self.assertEqual(fake.objects(), want)
            self.assertEqual(rejected, [])
            events = sum(fake.events(), [])
            self.assertEqual([event["id"] for event in events], ids)
            self.assertEqual(len(set(ids)), 5)
            times = [event["time"] for event in events]
            self.assertEqual(times, sorted(set(times)), "times grow in the order of publish")
            self.assertAlmostEqual(times[0] / 1e6, time.time(), delta=60)
            self.assertEqual(fake.requests[0].headers["Content-Type"], "application/x-ndjson")

    def test_an_event_keeps_its_id_and_its_time(self):
        fake = Fake()
        publisher, _ = publisher_of(fake)
        event = {**pin("a"), "id": "e-1", "time": "2026-11-20T10:00:00Z"}
        with publisher:
            self.assertEqual(publisher.publish(event), "e-1")
        self.assertEqual(fake.events(), [[event]])

    def test_events_wait_for_linger_and_flush_does_not(self):
        fake = Held()
        fake.released.release()
        publisher, _ = publisher_of(fake, linger=0.1)
        began = time.monotonic()
        publisher.publish(pin("a"))
        publisher.publish(pin("b"))
        fake.arrived.acquire()
        self.assertGreaterEqual(time.monotonic() - began, 0.095)
        publisher.close()
        self.assertEqual(fake.objects(), ["a b"])

        fake = Fake()
        publisher, _ = publisher_of(fake, linger=3600)
        publisher.publish(pin("a"))
        publisher.flush()
        self.assertEqual(fake.objects(), ["a"])
        publisher.close()

    def test_a_request_without_an_answer_is_repeated_with_the_same_ids(self):
        unavailable = httpx.Response(503, headers={"Retry-After": "1"})
        fake = Fake(httpx.ConnectError("refused"), unavailable, httpx.Response(429), httpx.Response(502))
        publisher, rejected = publisher_of(fake, max_events=2)
        with publisher:
            for name in "abc":
                publisher.publish(pin(name))
        self.assertEqual(fake.objects(), ["a b", "a b", "a b", "a b", "a b", "c"])
        self.assertEqual(len({request.content for request in fake.requests[:5]}), 1, "the bodies are equal")
        self.assertEqual(rejected, [])
        first, second = fake.times[1] - fake.times[0], fake.times[2] - fake.times[1]
        self.assertTrue(0.048 <= first < 0.9, f"the first backoff is {first} s")
        self.assertGreaterEqual(second, 0.995, "Retry-After was one second")

    def test_rejected_events_are_reported_one_by_one_and_never_repeated(self):
        others = "not published, because other events of the request are invalid"
        errors = ['line 1: verb: "x" is unknown', "line 3"]
        for answer, want in [
            (problem(400, title="Bad Request", errors=errors), [(True, errors[0]), (False, others), (True, errors[1])]),
            (problem(403, title="Forbidden"), [(False, "403 Forbidden")] * 3),
            (problem(500, title="Broken"), [(False, "500 Broken")] * 3),
        ]:
            fake = Fake(answer)
            publisher, rejected = publisher_of(fake)
            for name in "abc":
                publisher.publish(pin(name))
            publisher.flush()
            self.assertEqual([(r.invalid, str(r.reason)) for r in rejected], want)
            self.assertEqual([r.event["object"] for r in rejected], ["pin:a", "pin:b", "pin:c"])
            self.assertTrue(all(r.event["id"] for r in rejected))
            self.assertEqual(len(fake.requests), 1)
            publisher.publish(pin("d"))
            publisher.close()
            self.assertEqual(fake.objects(), ["a b c", "d"], "the publisher continues")

    def test_a_failing_callback_does_not_stop_the_publisher(self):
        fake = Fake(problem(403))
        publisher = Client("http://a.example", transport=fake).publisher(on_rejected=lambda _: 1 / 0)
        with self.assertLogs("smartfeed_client", "ERROR"):
            publisher.publish(pin("a"))
            publisher.flush()
        publisher.publish(pin("b"))
        publisher.close()
        self.assertEqual(fake.objects(), ["a", "b"])

    def test_a_request_is_not_repeated_after_retry_for(self):
        fake = Fake(*[httpx.Response(503) for _ in range(100)])
        publisher, rejected = publisher_of(fake, retry_for=0.3)
        publisher.publish(pin("a"))
        publisher.flush()
        publisher.close()
        self.assertEqual(len(rejected), 1)
        self.assertFalse(rejected[0].invalid)
        self.assertIsInstance(rejected[0].reason, ApiError)
        self.assertTrue(2 <= len(fake.requests) <= 4, f"{len(fake.requests)} requests")

    def test_publish_waits_while_the_queue_is_full(self):
        fake = Held()
        publisher, rejected = publisher_of(fake, max_events=1, max_queued=2)
        publisher.publish(pin("a"))
        fake.arrived.acquire()  # a is in flight
        publisher.publish(pin("b"))
        publisher.publish(pin("c"))
        waiting = threading.Thread(target=publisher.publish, args=[pin("d")])
        waiting.start()
        waiting.join(0.05)
        self.assertTrue(waiting.is_alive())
        fake.released.release()
        waiting.join(30)
        self.assertFalse(waiting.is_alive())
        fake.released.release(3)
        publisher.close()
        self.assertEqual(fake.objects(), ["a", "b", "c", "d"])
        self.assertEqual(rejected, [])

    def test_close_rejects_the_rest_after_its_timeout_and_later_events(self):
        fake = Fake(*[httpx.Response(503) for _ in range(100)])
        publisher, rejected = publisher_of(fake, max_events=1)
        for name in "abc":
            publisher.publish(pin(name))
        publisher.close(timeout=0.1)
        self.assertEqual([r.event["object"] for r in rejected], ["pin:a", "pin:b", "pin:c"])
        self.assertEqual(set(fake.objects()), {"a"}, "the others are not sent")
        with self.assertRaises(RuntimeError):
            publisher.publish(pin("d"))


if __name__ == "__main__":
    unittest.main()
