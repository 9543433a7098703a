import assert from "node:assert/strict";
import { test } from "node:test";
import { Client } from "@smartfeed/client";
import { eventsOf, fakeFetch, json } from "./fake.js";

const pin = (name) => ({ stream: "pins", actor: "user:a", verb: "create", object: `pin:${name}` });

/** Returns a publisher, the requests that it made, and the events that were rejected. */
function publisherOf(answers, options) {
  const { fetch, requests } = fakeFetch(...answers);
  const rejected = [];
  const publisher = new Client({ baseUrl: "http://a.example", fetch }).publisher({ onRejected: (r) => rejected.push(r), ...options });
  return { publisher, requests, rejected };
}

const objects = (requests) => requests.map((r) => eventsOf(r).map((e) => e.object.slice(4)).join(" "));

test("a request has at most maxEvents, and ends at maxBytes", async () => {
  for (const [options, want] of [
    [{}, ["a b c d e"]],
    [{ maxEvents: 2 }, ["a b", "c d", "e"]],
    [{ maxBytes: 200 }, ["a b", "c d", "e"]],
  ]) {
    const { publisher, requests, rejected } = publisherOf([], options);
    const ids = [];
    for (const name of "abcde") ids.push(await publisher.publish(pin(name)));
    await publisher.close();
    assert.deepEqual(objects(requests), want);
    assert.deepEqual(rejected, []);
    const events = requests.flatMap(eventsOf);
    assert.deepEqual(events.map((e) => e.id), ids);
    assert.equal(new Set(ids).size, 5);
    for (let i = 1; i < 5; i++) assert.ok(events[i].time > events[i - 1].time, "times grow in the order of publish");
    assert.ok(Math.abs(events[0].time / 1000 - Date.now()) < 60_000, "the time is in microseconds");
    assert.equal(requests[0].headers["content-type"], "application/x-ndjson");
  }
});

test("an event keeps its id and its time", async () => {
  const { publisher, requests } = publisherOf([]);
  assert.equal(await publisher.publish({ ...pin("a"), id: "e-1", time: "2026-11-20T10:00:00Z" }), "e-1");
  await publisher.close();
  assert.deepEqual(eventsOf(requests[0]), [{ ...pin("a"), id: "e-1", time: "2026-11-20T10:00:00Z" }]);
});

test("events wait for linger, and flush does not", async () => {
  const { publisher, requests } = publisherOf([], { linger: 100 });
  const began = Date.now();
  await publisher.publish(pin("a"));
  await publisher.publish(pin("b"));
  while (requests.length === 0) await new Promise(setImmediate);
  assert.ok(requests[0].time - began >= 95, `sent after ${requests[0].time - began} ms`);
  assert.deepEqual(objects(requests), ["a b"]);

  const lazy = publisherOf([], { linger: 3_600_000 });
  await lazy.publisher.publish(pin("a"));
  await lazy.publisher.flush();
  assert.deepEqual(objects(lazy.requests), ["a"]);
  await lazy.publisher.flush();
});

test("a request without an answer is repeated with the same ids", async () => {
  const answers = [{}, { status: 503, headers: { "Retry-After": "1" } }, { status: 429 }, { status: 502 }];
  const { publisher, requests, rejected } = publisherOf(answers, { maxEvents: 2 });
  for (const name of "abc") await publisher.publish(pin(name));
  await publisher.close();
  assert.deepEqual(objects(requests), ["a b", "a b", "a b", "a b", "a b", "c"]);
  assert.equal(new Set(requests.slice(0, 5).map((r) => r.body)).size, 1, "the bodies are equal");
  assert.deepEqual(rejected, []);
  const waits = requests.slice(1).map((r, i) => r.time - requests[i].time);
  assert.ok(waits[0] >= 48 && waits[0] < 900, `the first backoff is ${waits[0]} ms`);
  assert.ok(waits[1] >= 995, `Retry-After was one second, the wait is ${waits[1]} ms`);
});

test("rejected events are reported one by one, and never repeated", async () => {
  const others = "not published, because other events of the request are invalid";
  const problem = { type: "about:blank", title: "Bad Request", status: 400, errors: ['line 1: verb: "x" is unknown', "line 3"] };
  for (const [answer, want] of [
    [json(problem, 400), [["pin:a", true, 'line 1: verb: "x" is unknown'], ["pin:b", false, others], ["pin:c", true, "line 3"]]],
    [json({ ...problem, errors: [] }, 403), ["a", "b", "c"].map((name) => [`pin:${name}`, false, "403 Bad Request"])],
    [json({ ...problem, errors: [] }, 500), ["a", "b", "c"].map((name) => [`pin:${name}`, false, "500 Bad Request"])],
  ]) {
    const { publisher, requests, rejected } = publisherOf([answer]);
    for (const name of "abc") await publisher.publish(pin(name));
    await publisher.flush();
    assert.deepEqual(rejected.map((r) => [r.event.object, r.invalid, r.reason.message]), want);
    assert.ok(rejected.every((r) => r.event.id));
    assert.equal(requests.length, 1);
    await publisher.publish(pin("d"));
    await publisher.close();
    assert.deepEqual(objects(requests), ["a b c", "d"], "the publisher continues");
  }
});

test("a failing callback does not stop the publisher", async (t) => {
  const uncaught = [];
  const queue = queueMicrotask;
  t.mock.method(globalThis, "queueMicrotask", (task) => queue(() => {
    try { task(); } catch (error) { uncaught.push(error.message); }
  }));
  const { publisher, requests } = publisherOf([{ status: 403 }], { onRejected: () => { throw new Error("oops"); } });
  await publisher.publish(pin("a"));
  await publisher.flush();
  await publisher.publish(pin("b"));
  await publisher.close();
  assert.deepEqual(objects(requests), ["a", "b"]);
  assert.deepEqual(uncaught, ["oops"]);
});

test("a request is not repeated after retryFor", async () => {
  const { publisher, requests, rejected } = publisherOf(Array(100).fill({ status: 503 }), { retryFor: 300 });
  await publisher.publish(pin("a"));
  await publisher.flush();
  assert.equal(rejected.length, 1);
  assert.deepEqual([rejected[0].invalid, rejected[0].reason.status], [false, 503]);
  assert.ok(requests.length >= 2 && requests.length <= 4, `${requests.length} requests`);
});

test("publish waits while the queue is full", async () => {
  let release;
  const { fetch, requests } = fakeFetch();
  const held = async (...request) => {
    await new Promise((resolve) => (release = resolve));
    return fetch(...request);
  };
  const client = new Client({ baseUrl: "http://a.example", fetch: held });
  const publisher = client.publisher({ onRejected: assert.fail, maxEvents: 1, maxQueued: 2 });
  await publisher.publish(pin("a"));
  while (!release) await new Promise(setImmediate); // a is in flight
  await publisher.publish(pin("b"));
  await publisher.publish(pin("c"));
  let published = false;
  const waiting = publisher.publish(pin("d")).then(() => (published = true));
  await new Promise(setImmediate);
  assert.equal(published, false);
  const next = () => { const resume = release; release = undefined; resume(); };
  next();
  await waiting;
  const closing = publisher.close();
  while (requests.length < 4) {
    if (release) next();
    await new Promise(setImmediate);
  }
  await closing;
  assert.deepEqual(objects(requests), ["a", "b", "c", "d"]);
});

test("close rejects the rest after its timeout, and later events", async () => {
  const { publisher, rejected } = publisherOf(Array(100).fill({ status: 503 }), { maxEvents: 1, maxQueued: 2 });
  await publisher.publish(pin("a"));
  await publisher.publish(pin("b"));
  await publisher.publish(pin("c"));
  const waiting = assert.rejects(publisher.publish(pin("d")), /closed/);
  await publisher.close(100);
  await waiting;
  assert.deepEqual(rejected.map((r) => r.event.object), ["pin:a", "pin:b", "pin:c"]);
  await assert.rejects(publisher.publish(pin("e")), /closed/);
});
