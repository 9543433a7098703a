// The compiler checks this file; each mistake below must be an error.
import { Client } from "@smartfeed/client";

const client = new Client({ baseUrl: "http://a.example" });
const publisher = client.publisher({ onRejected: ({ event }) => console.error(event.stream, event.id) });

await publisher.publish({ stream: "candidates", user: "user:a", source: "ads", candidates: [{ pin: "pin:1", author: "user:b", created: 1, score: 2 }] });
// @ts-expect-error: the verb of another stream
await publisher.publish({ stream: "follows", actor: "user:a", verb: "create", object: "user:b" });
// @ts-expect-error: no object
await publisher.publish({ stream: "pins", actor: "user:a", verb: "create" });
// @ts-expect-error: an unknown key
await client.features({ featurez: ["f"] });
// @ts-expect-error: no user
await client.get("/v1/users/{user}/feed/new", { path: {} });
// @ts-expect-error: no such path
await client.get("/v1/user/{user}", { path: { user: "user:a" } });

const count: number = (await client.get("/v1/users/{user}/feed/new", { path: { user: "user:a" } })).count;
for await (const item of client.feed("user:a")) {
  const board: string | null = item.board;
  // @ts-expect-error: the board can be null
  const text: string = item.board;
  console.log(board, text, count);
}
