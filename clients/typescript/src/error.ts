import type { components } from "./generated.js";

/** A request that the server rejected. The server describes it with a problem document (RFC 9457). */
export class ApiError extends Error {
  override readonly name = "ApiError";

  constructor(
    readonly status: number,
    readonly title: string,
    readonly detail: string,
    /** Each problem of the request, if there may be several. */
    readonly errors: readonly string[],
    /** Identifies the request in the server's log. */
    readonly requestId: string,
    /** Seconds to wait before the next request. 0: not given. */
    readonly retryAfter: number,
  ) {
    super(`${status} ${title}${detail && ": " + detail}`);
  }

  /** Whether the request may succeed if it is repeated: the server, or a proxy, is overloaded or unavailable. */
  get temporary(): boolean {
    return [408, 429, 502, 503, 504].includes(this.status);
  }
}

/** Returns the error of a response. */
export function errorOf(response: Response, body: string): ApiError {
  const problem = problemOf(response, body);
  return new ApiError(
    response.status,
    problem.title ?? response.statusText,
    problem.detail ?? "",
    problem.errors ?? [],
    response.headers.get("X-Request-Id") ?? "",
    Number(response.headers.get("Retry-After")) || 0,
  );
}

/** Returns the problem document of a response. It is empty if a proxy wrote the response. */
function problemOf(response: Response, body: string): Partial<components["schemas"]["Problem"]> {
  if (!response.headers.get("Content-Type")?.startsWith("application/problem+json")) return {};
  try {
    return JSON.parse(body);
  } catch {
    return {};
  }
}
