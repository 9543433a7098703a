// A fetch that returns scripted answers, and then accepts everything. An answer without a status is a connection that ends.
export function fakeFetch(...answers) {
  const requests = [];
  const fetch = async (url, { method, headers, body, signal }) => {
    signal.throwIfAborted();
    requests.push({ url: String(url), method, headers: Object.fromEntries(headers), body, time: Date.now() });
    const { status, body: answer = "", headers: given = {} } = answers.shift() ?? { status: 202, body: '{"accepted":1}' };
    if (status === undefined) throw new TypeError("fetch failed");
    return new Response(answer, { status, headers: { "Content-Type": "application/problem+json", ...given } });
  };
  return { fetch, requests };
}

export const json = (value, status = 200) => ({ status, body: JSON.stringify(value) });

/** Returns the events of a request. */
export const eventsOf = ({ body }) => body.trimEnd().split("\n").map((line) => JSON.parse(line));
