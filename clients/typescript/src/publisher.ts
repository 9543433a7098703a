import type { Client, Event } from "./client.js";
import { ApiError } from "./error.js";

/** An event, without an id or a time if the publisher sets them. */
export type NewEvent = Event extends infer E ? (E extends Event ? Omit<E, "id" | "time"> & Partial<Pick<E, "id" | "time">> : never) : never;

/** An event that the server has not accepted. */
export interface Rejection {
  event: Event;
  reason: Error;
  /** Whether the event itself is invalid. Otherwise, it can be published again, with its id. */
  invalid: boolean;
}

export interface PublisherOptions {
  /** Receives each rejected event. */
  onRejected: (rejection: Rejection) => void;
  /** Maximum number of events of a request. Default: 500. */
  maxEvents?: number;
  /** A request is sent when it reaches this size. Default: 1 MiB. */
  maxBytes?: number;
  /** How long the first event of a request waits for others, in milliseconds. Default: 50. */
  linger?: number;
  /** How many events may wait for a request before publish waits. Default: 10,000. */
  maxQueued?: number;
  /** How long a request is repeated before its events are rejected, in milliseconds. Default: two minutes. */
  retryFor?: number;
}

interface Queued {
  event: Event;
  line: string;
  bytes: number;
}

const minBackoff = 100;
const maxBackoff = 10_000;

/**
 * Publishes events in batches, in order, with one request at a time. If the server is unavailable or overloaded, it repeats the
 * request with the same ids, so each event has one effect. It never repeats a request that the server rejected: onRejected
 * receives each of its events.
 */
export class Publisher {
  readonly #client: Client;
  readonly #options: Required<PublisherOptions>;
  readonly #stop = new AbortController();
  #queue: Queued[] = [];
  #queuedBytes = 0;
  #lastTime = 0;
  #running = false;
  #closed = false;
  #added = 0; // events ever, like the next two
  #done = 0;
  #flushed = 0; // sent without linger
  #waiting: (() => void)[] = [];

  /** @internal */
  constructor(client: Client, options: PublisherOptions) {
    this.#client = client;
    this.#options = { maxEvents: 500, maxBytes: 1 << 20, linger: 50, maxQueued: 10_000, retryFor: 120_000, ...options };
  }

  /**
   * Adds an event to the queue, and returns its id. Await the result: it is pending while the queue is full. An event without an
   * id gets a random one, and an event without a time gets the current time.
   */
  async publish(event: NewEvent): Promise<string> {
    this.#lastTime = Math.max(Date.now() * 1000, this.#lastTime + 1); // the times of events decide their order
    const complete = { ...event, id: event.id ?? crypto.randomUUID(), time: event.time ?? this.#lastTime } as Event;
    const line = JSON.stringify(complete) + "\n";
    await this.#until(() => this.#closed || this.#queue.length < this.#options.maxQueued);
    if (this.#closed) throw new Error("the publisher is closed");
    const bytes = new TextEncoder().encode(line).length;
    this.#queue.push({ event: complete, line, bytes });
    this.#queuedBytes += bytes;
    this.#added++;
    this.#notify();
    if (!this.#running) void this.#run();
    return complete.id;
  }

  /** Resolves when all queued events are accepted or rejected. */
  async flush(): Promise<void> {
    const events = (this.#flushed = this.#added);
    this.#notify();
    await this.#until(() => this.#done >= events);
  }

  /** Refuses further events, and flushes. After the timeout, in milliseconds, it rejects the remaining events. */
  async close(timeout = 30_000): Promise<void> {
    this.#closed = true;
    const timer = setTimeout(() => {
      this.#stop.abort();
      this.#notify();
    }, timeout);
    await this.flush();
    clearTimeout(timer);
  }

  async #run(): Promise<void> {
    this.#running = true;
    while (this.#queue.length > 0) {
      await this.#wait(this.#options.linger, () => this.#isFull() || this.#flushed > this.#done || this.#closed);
      const batch = this.#take();
      await this.#send(batch);
      this.#done += batch.length;
      this.#notify();
    }
    this.#running = false;
  }

  #isFull(): boolean {
    return this.#queue.length >= this.#options.maxEvents || this.#queuedBytes >= this.#options.maxBytes;
  }

  /** Removes a batch from the queue. */
  #take(): Queued[] {
    let events = 0;
    let bytes = 0;
    for (const next of this.#queue) {
      if (events >= this.#options.maxEvents || bytes >= this.#options.maxBytes) break;
      events++;
      bytes += next.bytes;
    }
    const batch = this.#queue.splice(0, events);
    this.#queuedBytes -= bytes;
    this.#notify();
    return batch;
  }

  /** Sends a batch until the server accepts or rejects it, or the time is over. */
  async #send(batch: Queued[]): Promise<void> {
    const body = batch.map((q) => q.line).join("");
    const giveUp = Date.now() + this.#options.retryFor;
    const signal = this.#stop.signal;
    const headers = { "Content-Type": "application/x-ndjson" };
    for (let backoff = minBackoff; ; backoff = Math.min(2 * backoff, maxBackoff)) {
      try {
        await this.#client.call("POST", "/v1/events", { body, headers, signal });
        return;
      } catch (error) {
        const refused = error instanceof ApiError ? error : undefined;
        // Half of the backoff is random, so that clients do not return at once after an outage.
        const wait = Math.max((backoff / 2) * (1 + Math.random()), (refused?.retryAfter ?? 0) * 1000);
        const again = (refused?.temporary ?? true) && Date.now() + wait <= giveUp;
        if (again) await this.#wait(wait, () => signal.aborted);
        if (!again || signal.aborted) return this.#reject(batch, error as Error);
      }
    }
  }

  /** Reports each event, with its own reason if the server names its line. */
  #reject(batch: Queued[], error: Error): void {
    const problems = new Map<number, string>();
    for (const problem of error instanceof ApiError ? error.errors : []) {
      const line = /^line (\d+)/.exec(problem);
      if (line) problems.set(Number(line[1]), problem);
    }
    const others = problems.size > 0 ? new Error("not published, because other events of the request are invalid") : error;
    batch.forEach(({ event }, i) => {
      const problem = problems.get(i + 1);
      try {
        this.#options.onRejected({ event, reason: problem ? new Error(problem) : others, invalid: problem !== undefined });
      } catch (thrown) {
        queueMicrotask(() => { throw thrown; }); // as an uncaught exception; the publisher continues
      }
    });
  }

  /** Waits for a time in milliseconds, or until the condition holds. */
  async #wait(time: number, condition: () => boolean): Promise<void> {
    let over = false;
    const timer = setTimeout(() => {
      over = true;
      this.#notify();
    }, time);
    await this.#until(() => over || condition());
    clearTimeout(timer);
  }

  async #until(condition: () => boolean): Promise<void> {
    while (!condition()) await new Promise<void>((wake) => this.#waiting.push(wake));
  }

  /** Makes #until check its conditions again. */
  #notify(): void {
    for (const wake of this.#waiting.splice(0)) wake();
  }
}
