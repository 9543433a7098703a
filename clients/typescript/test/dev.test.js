// Against the `smartfeed dev` whose address is SMARTFEED_TEST_CLIENTS. `make test-clients` sets it.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { Client } from "@smartfeed/client";

const baseUrl = process.env.SMARTFEED_TEST_CLIENTS;
const options = { skip: baseUrl ? false : "SMARTFEED_TEST_CLIENTS is not set" };

/** Polls until the condition holds. */
async function eventually(what, condition) {
  for (const end = Date.now() + 30_000; Date.now() < end; await new Promise((resume) => setTimeout(resume, 50))) {
    if (await condition()) return;
  }
  assert.fail(`no ${what} within 30 s`);
}

test("a batch whose answer is lost has one effect", options, async () => {
  let requests = 0;
  const losing = async (...request) => {
    const response = await fetch(...request);
    return ++requests === 1 ? new Response("", { status: 503 }) : response;
  };
  const publisher = new Client({ baseUrl, fetch: losing }).publisher({ onRejected: ({ reason }) => assert.fail(reason) });
  const run = Date.now();
  const [reader, author] = [`user:ts-reader-${run}`, `user:ts-author-${run}`];
  await publisher.publish({ stream: "follows", actor: reader, verb: "follow", object: author });
  const want = [];
  for (let i = 0; i < 5; i++) {
    const pin = `pin:ts-${run}-${i}`;
    want.push(pin);
    await publisher.publish({ stream: "pins", actor: author, verb: "create", object: pin, title: "Tea", interests: ["interest:tea"] });
    await publisher.publish({ stream: "actions", actor: reader, verb: "save", object: pin, surface: "test" });
  }
  await publisher.close();
  assert.equal(requests, 2, "the batch is sent twice");

  const client = new Client({ baseUrl });
  await eventually("five new pins", async () => (await client.get("/v1/users/{user}/feed/new", { path: { user: reader } })).count === 5);
  const visit = await client.visit(reader);
  assert.deepEqual(visit.items.map((i) => i.pin).sort(), want);
  const pins = [];
  for await (const { pin } of client.feed(reader, { limit: 2 })) pins.push(pin);
  assert.deepEqual(pins.sort(), want, "pages of two have each pin once");
  const { next } = await client.visit(reader, { limit: 2 });
  await assert.rejects(client.older(author, next), { name: "ApiError", status: 400 }, "the cursor of another user");
  await eventually("five saves", async () => {
    const { values } = await client.features({ features: ["interests_24h"], users: [reader] });
    return values[reader].interests_24h?.["interest:tea"] === 5;
  });
});

test("the server names invalid events", options, async () => {
  const rejected = [];
  const publisher = new Client({ baseUrl }).publisher({ onRejected: (r) => rejected.push(r) });
  await publisher.publish({ stream: "pins", actor: "user:a", verb: "create", object: "pin:valid" });
  await publisher.publish({ stream: "pins", actor: "user:a", verb: "bake", object: "pin:invalid" });
  await publisher.close();
  assert.deepEqual(rejected.map((r) => r.invalid), [false, true]);
  assert.match(rejected[1].reason.message, /bake/);
});

test("the example of the README runs", options, async (t) => {
  const readme = await readFile(new URL("../README.md", import.meta.url), "utf8");
  const [, example] = /```ts\n(.*?)```/s.exec(readme);
  const code = example.replace("http://127.0.0.1:8080", baseUrl).replace('"@smartfeed/client"', JSON.stringify(import.meta.resolve("@smartfeed/client")));
  const lines = [];
  t.mock.method(console, "log", (...line) => lines.push(line.join(" ")));
  await import(`data:text/javascript,${encodeURIComponent(code)}`);
  assert.match(lines.join("\n"), /pin:gongfu-ts following/);
});
