"""Publishing of events in batches."""

from __future__ import annotations

import dataclasses
import json
import logging
import random
import re
import threading
import time
import uuid
from collections import deque
from typing import Any, Callable, cast

from ._generated import Event, NewEvent

_MIN_BACKOFF = 0.1
_MAX_BACKOFF = 10.0

_log = logging.getLogger("smartfeed_client")


@dataclasses.dataclass(frozen=True)
class Rejection:
    """An event that the server has not accepted.

    invalid: whether the event itself is invalid. Otherwise, it can be published again, with its id.
    """

    event: Event
    reason: Exception
    invalid: bool


@dataclasses.dataclass(frozen=True)
class _Queued:
    event: Event
    line: bytes


class Publisher:
    """Publishes events in batches, in order, with one request at a time. It is safe for concurrent use by threads.

    If the server is unavailable or overloaded, it repeats the request with the same ids, so each event has one effect. It never
    repeats a request that the server rejected: on_rejected receives each of its events.
    """

    def __init__(
        self,
        send: Callable[[bytes], None],
        on_rejected: Callable[[Rejection], object],
        max_events: int,
        max_bytes: int,
        linger: float,
        max_queued: int,
        retry_for: float,
    ) -> None:
        self._send_body = send
        self._on_rejected = on_rejected
        self._max_events, self._max_bytes = max_events, max_bytes
        self._linger, self._max_queued, self._retry_for = linger, max_queued, retry_for
        self._changed = threading.Condition()  # guards all below
        self._queue: deque[_Queued] = deque()
        self._queued_bytes = 0
        self._last_time = 0
        self._closed = False
        self._stopped = False
        self._added = 0  # events ever, like the next two
        self._done = 0
        self._flushed = 0  # sent without linger
        self._thread = threading.Thread(target=self._run, name="smartfeed-publisher", daemon=True)
        self._thread.start()

    def __enter__(self) -> Publisher:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def publish(self, event: NewEvent) -> str:
        """Adds an event to the queue, and returns its id. If the queue is full, publish waits.

        An event without an id gets a random one, and an event without a time gets the current time.
        """
        complete = cast("dict[str, Any]", {**event})
        complete.setdefault("id", str(uuid.uuid4()))
        with self._changed:
            self._last_time = max(time.time_ns() // 1000, self._last_time + 1)  # the times of events decide their order
            complete.setdefault("time", self._last_time)
            line = json.dumps(complete).encode() + b"\n"
            self._changed.wait_for(lambda: self._closed or len(self._queue) < self._max_queued)
            if self._closed:
                raise RuntimeError("the publisher is closed")
            self._queue.append(_Queued(cast(Event, complete), line))
            self._queued_bytes += len(line)
            self._added += 1
            self._changed.notify_all()
        return cast(str, complete["id"])

    def flush(self) -> None:
        """Waits until all queued events are accepted or rejected."""
        with self._changed:
            events = self._flushed = self._added
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._done >= events)

    def close(self, timeout: float = 30.0) -> None:
        """Refuses further events, and flushes. After the timeout, in seconds, it rejects the remaining events.

        It waits for the end of the request in flight.
        """
        with self._changed:
            self._closed = True
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._done >= self._added, timeout)
            self._stopped = True
            self._changed.notify_all()
        self._thread.join()

    def _run(self) -> None:
        while batch := self._next():
            if self._stopped:
                self._reject(batch, RuntimeError("the publisher was closed"))
            else:
                self._send(batch)
            with self._changed:
                self._done += len(batch)
                self._changed.notify_all()

    def _next(self) -> list[_Queued]:
        """Waits for a batch, and removes it from the queue. It is empty when the publisher is closed."""
        with self._changed:
            self._changed.wait_for(lambda: self._queue or self._closed)
            self._changed.wait_for(lambda: self._is_full() or self._flushed > self._done or self._closed, self._linger)
            batch: list[_Queued] = []
            size = 0
            while self._queue and len(batch) < self._max_events and size < self._max_bytes:
                batch.append(self._queue.popleft())
                size += len(batch[-1].line)
            self._queued_bytes -= size
            self._changed.notify_all()
            return batch

    def _is_full(self) -> bool:
        return len(self._queue) >= self._max_events or self._queued_bytes >= self._max_bytes

    def _send(self, batch: list[_Queued]) -> None:
        """Sends a batch until the server accepts or rejects it, or the time is over."""
        body = b"".join(queued.line for queued in batch)
        give_up = time.monotonic() + self._retry_for
        backoff = _MIN_BACKOFF
        while True:
            try:
                self._send_body(body)
                return
            except Exception as error:
                # Half of the backoff is random, so that clients do not return at once after an outage.
                wait = max(backoff * random.uniform(0.5, 1), getattr(error, "retry_after", 0))
                again = getattr(error, "temporary", True) and time.monotonic() + wait <= give_up
                if not again or self._wait_for_stop(wait):
                    self._reject(batch, error)
                    return
            backoff = min(2 * backoff, _MAX_BACKOFF)

    def _wait_for_stop(self, timeout: float) -> bool:
        with self._changed:
            return self._changed.wait_for(lambda: self._stopped, timeout)

    def _reject(self, batch: list[_Queued], error: Exception) -> None:
        """Reports each event, with its own reason if the server names its line."""
        problems = {}
        for problem in getattr(error, "errors", []):
            if line := re.match(r"line (\d+)", problem):
                problems[int(line[1])] = ValueError(problem)
        others = ValueError("not published, because other events of the request are invalid") if problems else error
        for number, queued in enumerate(batch, 1):
            try:
                self._on_rejected(Rejection(queued.event, problems.get(number, others), number in problems))
            except Exception:
                _log.exception("on_rejected failed for the event %s", queued.event["id"])
