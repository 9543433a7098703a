import assert from "node:assert/strict";
import { createServer } from "node:net";
import { test } from "node:test";
import { ApiError, Client } from "@smartfeed/client";
import { fakeFetch, json } from "./fake.js";

const item = (pin) => ({ pin, time: "2026-11-20T10:00:00Z", author: "user:b", board: null, interests: [], title: "", link: "", new: true, source: "following", score: 1 });
const page = (next, ...pins) => json({ items: pins.map(item), next, degraded: [] });

test("feed reads all pages after one visit", async () => {
  const { fetch, requests } = fakeFetch(page("x", "pin:1", "pin:2"), page("y"), page(null, "pin:3"));
  const client = new Client({ baseUrl: "http://a.example/base/", fetch });
  const pins = [];
  for await (const { pin } of client.feed("user:a/b", { feed: "plain", limit: 2 })) pins.push(pin);
  assert.deepEqual(pins, ["pin:1", "pin:2", "pin:3"]);
  const path = "http://a.example/base/v1/users/user%3Aa%2Fb/feed";
  assert.deepEqual(requests.map(({ method, url }) => `${method} ${url}`), [
    `GET ${path}?feed=plain&limit=2`, `GET ${path}?cursor=x&limit=2`, `GET ${path}?cursor=y&limit=2`,
  ]);
});

test("feed stops when the loop ends, and throws the error of a page", async () => {
  const { fetch, requests } = fakeFetch(page("x", "pin:1"), page("x", "pin:1"), { status: 503 });
  const client = new Client({ baseUrl: "http://a.example", fetch });
  for await (const _ of client.feed("user:a")) break;
  assert.equal(requests.length, 1);
  await assert.rejects(async () => { for await (const _ of client.feed("user:a")); }, { name: "ApiError", status: 503 });
  assert.equal(requests.length, 3, "a page is not requested again");
});

test("requests have the current token, and no parameters without a value", async () => {
  const { fetch, requests } = fakeFetch(page(null), page(null), json({ values: {}, missing: [], degraded: [], as_of: "", fresh: null }));
  let tokens = 0;
  const client = new Client({ baseUrl: "http://a.example", token: async () => `t-${++tokens}`, fetch });
  await client.visit("user:a");
  await client.older("user:a", "x&y");
  await client.features({ features: ["f"], users: ["user:a"] });
  assert.deepEqual(requests.map(({ url, headers }) => [url, headers.authorization]), [
    ["http://a.example/v1/users/user%3Aa/feed", "Bearer t-1"],
    ["http://a.example/v1/users/user%3Aa/feed?cursor=x%26y", "Bearer t-2"],
    ["http://a.example/v1/features", "Bearer t-3"],
  ]);
  assert.deepEqual([requests[2].method, requests[2].headers["content-type"], requests[2].body], ["POST", "application/json", '{"features":["f"],"users":["user:a"]}']);
});

test("a visit with a key, and a peek", async () => {
  const { fetch, requests } = fakeFetch(page(null, "pin:1"), page(null, "pin:1"));
  const client = new Client({ baseUrl: "http://a.example", fetch });
  await client.visitOnce("user:a/b", "k-1", { limit: 3 });
  await client.peek("user:a", { feed: "plain" });
  assert.deepEqual(requests.map(({ method, url, headers }) => [method, url, headers["idempotency-key"]]), [
    ["POST", "http://a.example/v1/users/user%3Aa%2Fb/visits?limit=3", "k-1"],
    ["GET", "http://a.example/v1/users/user%3Aa/feed?feed=plain&peek=true", undefined],
  ]);
});

test("get expands the path and the query", async () => {
  const { fetch, requests } = fakeFetch(json({ items: [], degraded: [] }));
  const client = new Client({ baseUrl: "http://a.example", fetch });
  await client.get("/v1/pins/{pin}/related", { path: { pin: "pin:a?b" }, query: { limit: 5 } });
  assert.equal(requests[0].url, "http://a.example/v1/pins/pin%3Aa%3Fb/related?limit=5");
});

test("an error has the problem of the server", async () => {
  const problem = { type: "about:blank", title: "Service Unavailable", status: 503, detail: "later", errors: ["a", "b"] };
  const { fetch } = fakeFetch(
    { ...json(problem, 503), headers: { "Retry-After": "7", "X-Request-Id": "r-1" } },
    { status: 502, body: "<p>", headers: { "Content-Type": "text/html" } },
    { status: 500, body: "{" },
  );
  const client = new Client({ baseUrl: "http://a.example", token: "canary", fetch });
  await assert.rejects(client.visit("user:a"), (error) => {
    assert.ok(error instanceof ApiError);
    assert.deepEqual({ ...error, message: error.message }, {
      name: "ApiError", status: 503, title: "Service Unavailable", detail: "later", errors: ["a", "b"], requestId: "r-1", retryAfter: 7,
      message: "503 Service Unavailable: later",
    });
    return true;
  });
  await assert.rejects(client.visit("user:a"), { name: "ApiError", status: 502, errors: [] });
  await assert.rejects(client.visit("user:a"), { name: "ApiError", status: 500, detail: "" });
});

test("a request ends after the timeout", async (t) => {
  const silent = createServer((socket) => t.after(() => socket.destroy())).listen(0, "127.0.0.1");
  t.after(() => silent.close());
  await new Promise((listening) => silent.once("listening", listening));
  const client = new Client({ baseUrl: `http://127.0.0.1:${silent.address().port}`, timeout: 50 });
  await assert.rejects(client.visit("user:a"), { name: "TimeoutError" });
});
