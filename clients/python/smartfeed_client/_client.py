"""The client, and the errors of the server."""

from __future__ import annotations

from typing import Any, Callable, Iterator, Mapping, Optional, Union, cast
from urllib.parse import quote

import httpx

from ._generated import FeaturesAnswer, FeaturesRequest, FeedItem, FeedPage
from ._publisher import Publisher, Rejection


class ApiError(Exception):
    """A request that the server rejected. The server describes it with a problem document (RFC 9457).

    status, title, detail: as in the document
    errors: each problem of the request, if there may be several
    request_id: identifies the request in the server's log
    retry_after: seconds to wait before the next request; 0: not given
    """

    def __init__(self, response: httpx.Response) -> None:
        problem = _problem(response)
        self.status = response.status_code
        self.title: str = problem.get("title", response.reason_phrase)
        self.detail: str = problem.get("detail", "")
        self.errors: list[str] = problem.get("errors", [])
        self.request_id = response.headers.get("X-Request-Id", "")
        retry_after = response.headers.get("Retry-After", "")
        self.retry_after = int(retry_after) if retry_after.isdecimal() else 0
        super().__init__(f"{self.status} {self.title}" + (f": {self.detail}" if self.detail else ""))

    @property
    def temporary(self) -> bool:
        """Whether the request may succeed if it is repeated: the server, or a proxy, is overloaded or unavailable."""
        return self.status in (408, 429, 502, 503, 504)


def _problem(response: httpx.Response) -> dict[str, Any]:
    """Returns the problem document of a response. It is empty if a proxy wrote the response."""
    if not response.headers.get("Content-Type", "").startswith("application/problem+json"):
        return {}
    try:
        return cast("dict[str, Any]", response.json())
    except ValueError:
        return {}


def _given(query: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the parameters that have a value."""
    return {name: value for name, value in query.items() if value is not None}


class Client:
    """Calls one server. It is safe for concurrent use by threads. The caller must close it, or use it in a with statement.

    If the server rejects a request, the method raises an ApiError; if it cannot be reached, an httpx.TransportError. Only a
    Publisher repeats requests.
    """

    def __init__(
        self,
        base_url: str,
        token: Union[None, str, Callable[[], str]] = None,
        timeout: float = 30.0,
        transport: Optional[httpx.BaseTransport] = None,
    ) -> None:
        """base_url is such as https://feeds.example. token is a bearer token, or a function that returns the current one.

        timeout, in seconds, limits the time to connect, and the time without data. transport is one of httpx.
        """
        self._token = token
        self._http = httpx.Client(base_url=base_url, timeout=timeout, transport=transport)

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the connections."""
        self._http.close()

    def visit(self, user: str, feed: Optional[str] = None, limit: Optional[int] = None) -> FeedPage:
        """Visits a user's feed. The server records its new items as shown. The default feed is home, the default limit 25."""
        return cast(FeedPage, self.get("/v1/users/{user}/feed", {"user": user}, {"feed": feed, "limit": limit}))

    def visit_once(self, user: str, key: str, feed: Optional[str] = None, limit: Optional[int] = None) -> FeedPage:
        """Visits a user's feed under a key of the caller, 1 to 256 bytes.

        Repeat a visit without an answer with the same key: if the first attempt has shown new items, the page of a repeat has
        those items on top.
        """
        path = f"/v1/users/{quote(user, safe='')}/visits"
        params = _given({"feed": feed, "limit": limit})
        return cast(FeedPage, self.call("POST", path, params=params, headers={"Idempotency-Key": key}))

    def peek(self, user: str, feed: Optional[str] = None, limit: Optional[int] = None) -> FeedPage:
        """Returns the page that a visit would return now. It changes nothing."""
        query = {"feed": feed, "limit": limit, "peek": "true"}
        return cast(FeedPage, self.get("/v1/users/{user}/feed", {"user": user}, query))

    def older(self, user: str, cursor: str, limit: Optional[int] = None) -> FeedPage:
        """Returns the page at a cursor, the `next` of an earlier page."""
        return cast(FeedPage, self.get("/v1/users/{user}/feed", {"user": user}, {"cursor": cursor, "limit": limit}))

    def feed(self, user: str, feed: Optional[str] = None, limit: Optional[int] = None) -> Iterator[FeedItem]:
        """Visits a user's feed and yields its items, then older items page by page, until the end of the feed.

        New items beyond the first page stay new until the next visit.
        """
        page = self.visit(user, feed, limit)
        while True:
            yield from page["items"]
            if page["next"] is None:
                return
            page = self.older(user, page["next"], limit)

    def features(self, request: FeaturesRequest) -> FeaturesAnswer:
        """Returns values of features."""
        return cast(FeaturesAnswer, self.call("POST", "/v1/features", json=request))

    def publisher(
        self,
        on_rejected: Callable[[Rejection], object],
        max_events: int = 500,
        max_bytes: int = 1 << 20,
        linger: float = 0.05,
        max_queued: int = 10_000,
        retry_for: float = 120.0,
    ) -> Publisher:
        """Returns a Publisher, which sends events in batches. The caller must close it, or use it in a with statement.

        on_rejected: receives each rejected event, in the thread of the publisher
        max_events: maximum number of events of a request
        max_bytes: a request is sent when it reaches this size
        linger: how long the first event of a request waits for others, in seconds
        max_queued: how many events may wait for a request before publish waits
        retry_for: how long a request is repeated before its events are rejected, in seconds
        """
        return Publisher(self._publish, on_rejected, max_events, max_bytes, linger, max_queued, retry_for)

    def _publish(self, body: bytes) -> None:
        self.call("POST", "/v1/events", content=body, headers={"Content-Type": "application/x-ndjson"})

    def get(self, path: str, values: Mapping[str, str], query: Optional[Mapping[str, Any]] = None) -> Any:
        """Makes any GET request of the API, such as get("/v1/pins/{pin}/related", {"pin": "pin:tea"}, {"limit": 5})."""
        expanded = path.format_map({name: quote(value, safe="") for name, value in values.items()})
        return self.call("GET", expanded, params=_given(query or {}))

    def call(self, method: str, path: str, **request: Any) -> Any:
        """Makes a request with the arguments of httpx.Client.request, and returns the parsed body of the answer."""
        headers = dict(request.pop("headers", {}))
        token = self._token() if callable(self._token) else self._token
        if token:
            headers["Authorization"] = f"Bearer {token}"
        response = self._http.request(method, path, headers=headers, **request)
        if not response.is_success:
            raise ApiError(response)
        return response.json()
