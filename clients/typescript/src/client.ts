import { errorOf } from "./error.js";
import type { components, paths } from "./generated.js";
import { Publisher, type PublisherOptions } from "./publisher.js";

type Schemas = components["schemas"];
export type Event = Schemas["Event"];
export type FeaturesAnswer = Schemas["FeaturesAnswer"];
export type FeaturesRequest = Schemas["FeaturesRequest"];
export type FeedItem = Schemas["FeedItem"];
export type FeedPage = Schemas["FeedPage"];
export type Problem = Schemas["Problem"];

/** An operation that answers with JSON. */
type Operation<A> = { parameters: { path?: unknown; query?: unknown }; responses: { 200: { content: { "application/json": A } } } };

/** The paths that Client.get accepts. */
export type GetPath = { [P in keyof paths]: paths[P] extends { get: Operation<unknown> } ? P : never }[keyof paths];
export type GetParameters<P extends GetPath> = Pick<paths[P]["get"]["parameters"], "path" | "query">;
export type GetAnswer<P extends GetPath> = paths[P]["get"] extends Operation<infer A> ? A : never;

export interface ClientOptions {
  /** Such as https://feeds.example. */
  baseUrl: string;
  /** A bearer token, or a function that returns the current one. Default: none. */
  token?: string | (() => string | Promise<string>);
  /** Default: the global fetch. */
  fetch?: typeof fetch;
  /** Of a request, in milliseconds. Default: 30,000. */
  timeout?: number;
}

export interface VisitOptions {
  /** Name of the feed. Default: home. */
  feed?: string;
  /** Maximum number of items of a page, 1 to 100. Default: 25. */
  limit?: number;
}

/** A request that the generated types do not check. */
interface Call {
  query?: Record<string, unknown> | undefined;
  body?: string;
  headers?: Record<string, string>;
  signal?: AbortSignal;
}

/**
 * Calls one server. If the server rejects a request, the method throws an ApiError; after the timeout, a DOMException named
 * TimeoutError. Only a Publisher repeats requests.
 */
export class Client {
  readonly #options: ClientOptions;

  constructor(options: ClientOptions) {
    this.#options = options;
  }

  /** Visits a user's feed. The server records its new items as shown. */
  visit(user: string, options: VisitOptions = {}): Promise<FeedPage> {
    return this.get("/v1/users/{user}/feed", { path: { user }, query: { ...options } });
  }

  /**
   * Visits a user's feed under a key of the caller, 1 to 256 bytes. Repeat a visit without an answer with the same key: if the
   * first attempt has shown new items, the page of a repeat has those items on top.
   */
  visitOnce(user: string, key: string, options: VisitOptions = {}): Promise<FeedPage> {
    return this.call("POST", `/v1/users/${encodeURIComponent(user)}/visits`, { query: { ...options }, headers: { "Idempotency-Key": key } });
  }

  /** Returns the page that a visit would return now. It changes nothing. */
  peek(user: string, options: VisitOptions = {}): Promise<FeedPage> {
    return this.get("/v1/users/{user}/feed", { path: { user }, query: { ...options, peek: "true" } });
  }

  /** Returns the page at a cursor, the `next` of an earlier page. */
  older(user: string, cursor: string, limit?: number): Promise<FeedPage> {
    return this.get("/v1/users/{user}/feed", { path: { user }, query: { cursor, ...(limit && { limit }) } });
  }

  /**
   * Visits a user's feed and yields its items, then older items page by page, until the end of the feed. New items beyond the
   * first page stay new until the next visit.
   */
  async *feed(user: string, options: VisitOptions = {}): AsyncGenerator<FeedItem, void, undefined> {
    let page = await this.visit(user, options);
    for (;;) {
      yield* page.items;
      if (page.next === null) return;
      page = await this.older(user, page.next, options.limit);
    }
  }

  /** Returns values of features. */
  features(request: FeaturesRequest): Promise<FeaturesAnswer> {
    return this.call("POST", "/v1/features", { body: JSON.stringify(request), headers: { "Content-Type": "application/json" } });
  }

  /** Returns a Publisher, which sends events in batches. The caller must close it. */
  publisher(options: PublisherOptions): Publisher {
    return new Publisher(this, options);
  }

  /** Makes any GET request of the API, such as `get("/v1/users/{user}/feed/why", { path: { user }, query: { pin } })`. */
  get<P extends GetPath>(path: P, parameters: GetParameters<P>): Promise<GetAnswer<P>> {
    const { path: values = {}, query } = parameters as { path?: Record<string, string>; query?: Record<string, unknown> };
    const expanded = path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(values[name] ?? ""));
    return this.call("GET", expanded, { query });
  }

  /** Makes a request, and returns the body of the answer. */
  async call<A>(method: string, path: string, { query = {}, body, headers: given = {}, signal }: Call = {}): Promise<A> {
    const { baseUrl, token, fetch = globalThis.fetch, timeout = 30_000 } = this.#options;
    const url = new URL(baseUrl.replace(/\/$/, "") + path);
    for (const [name, value] of Object.entries(query)) {
      if (value !== undefined) url.searchParams.set(name, String(value));
    }
    const headers = new Headers(given);
    const bearer = typeof token === "function" ? await token() : token;
    if (bearer) headers.set("Authorization", `Bearer ${bearer}`);
    const signals = [AbortSignal.timeout(timeout), ...(signal ? [signal] : [])];
    // The server sends no redirects, and the token is only for this server.
    const response = await fetch(url, { method, headers, body: body ?? null, redirect: "error", signal: AbortSignal.any(signals) });
    const text = await response.text();
    if (!response.ok) throw errorOf(response, text);
    return JSON.parse(text);
  }
}
