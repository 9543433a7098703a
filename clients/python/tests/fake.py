"""A server without a network."""

from __future__ import annotations

import json
import time
from typing import Any, Optional, Union

import httpx


class Fake(httpx.BaseTransport):
    """Returns scripted answers in turn, and then accepts everything. An exception is a connection that ends."""

    def __init__(self, *answers: Union[httpx.Response, Exception]) -> None:
        self.answers = list(answers)
        self.requests: list[httpx.Request] = []
        self.times: list[float] = []

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        request.read()
        self.requests.append(request)
        self.times.append(time.monotonic())
        answer = self.answers.pop(0) if self.answers else httpx.Response(202, json={"accepted": 1})
        if isinstance(answer, Exception):
            raise answer
        return answer

    def events(self) -> list[list[Any]]:
        """Returns the events of each request."""
        return [[json.loads(line) for line in request.content.splitlines()] for request in self.requests]

    def objects(self) -> list[str]:
        """Returns the names of the pins of each request."""
        return [" ".join(event["object"][4:] for event in events) for events in self.events()]


def problem(status: int, headers: Optional[dict[str, str]] = None, **members: Any) -> httpx.Response:
    content = json.dumps({"type": "about:blank", "status": status, **members})
    return httpx.Response(status, content=content, headers={"Content-Type": "application/problem+json", **(headers or {})})
