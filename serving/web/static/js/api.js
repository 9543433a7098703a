// The calls of the API, and its streams of events.

// Problem is an error of the API: a problem document, or no answer.
export class Problem extends Error {
  constructor(status, body, fallback) {
    super(body.detail || fallback);
    this.status = status; // 0: no answer at all
    this.errors = body.errors || [];
  }
}

let token = remembered();
let prompt = async () => null; // asks the user of the console for a token; null: none
let entered = () => {}; // called with each new token
let prompting = null; // the open prompt, shared by all calls
let declined = false; // the prompt was declined, and is not repeated until allowPrompt

// onUnauthorized sets the function that asks for a token after a 401, which receives the detail of the problem, and the one that
// is called when there is a new token.
export function onUnauthorized(promptForToken, tokenEntered) {
  prompt = promptForToken;
  entered = tokenEntered;
}

export const hasToken = () => Boolean(token);

// allowPrompt allows the next 401 to ask for a token again.
export function allowPrompt() {
  declined = false;
}

function remembered() {
  try { return sessionStorage.getItem('token') || ''; } catch { return ''; }
}

function remember(text) {
  token = text;
  try { sessionStorage.setItem('token', text); } catch { /* the storage is blocked */ }
  entered();
}

function headers(more) {
  return token ? { ...more, Authorization: `Bearer ${token}` } : more;
}

const timeout = 20000; // ms, default for requests without a signal

// send fetches a path with the current token, if any.
function send(path, options) {
  const signal = options.signal || AbortSignal.timeout(options.timeout || timeout);
  return fetch(path, { ...options, signal, headers: headers(options.headers) }).catch((error) => {
    if (error.name === 'AbortError') throw error;
    throw new Problem(0, {}, 'the server does not answer');
  });
}

// request sends a request. After a 401 it asks for a token and sends the request once more.
async function request(path, options = {}) {
  const used = token;
  const answer = await send(path, options);
  if (answer.status !== 401 || declined) return answer;
  if (token === used) {
    const problem = await answer.clone().json().catch(() => ({}));
    prompting ||= prompt(problem.detail || '').then((text) => {
      if (text) remember(text);
      else declined = true;
    }).finally(() => { prompting = null; });
    await prompting;
  }
  return token === used ? answer : send(path, options);
}

// call sends a request to the API and returns the body of the answer. It throws a Problem for an error.
export async function call(path, options) {
  const answer = await request(path, options);
  const body = await answer.json().catch(() => ({}));
  if (!answer.ok) throw new Problem(answer.status, body, `${answer.status} ${answer.statusText}`);
  return body;
}

export const post = (path, value) => call(path, {
  method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(value),
});

// publish publishes one event.
export const publish = (event) => call('/v1/events', {
  method: 'POST', headers: { 'Content-Type': 'application/x-ndjson' }, body: JSON.stringify(event),
});

export const ofUser = (user, rest) => `/v1/users/${encodeURIComponent(user)}/${rest}`;

// query returns a query string with encoded values.
export const query = (values) => `?${new URLSearchParams(values)}`;

const firstPause = 500, longestPause = 15000; // ms before a closed stream is opened again

// listen calls handle with the name and the data of every server-sent event of a path. It reopens the stream when it ends,
// until the returned function is called. (An EventSource cannot send a token.)
export function listen(path, handle) {
  const end = new AbortController();
  follow(path, handle, end.signal);
  return () => end.abort();
}

async function follow(path, handle, signal) {
  for (let pause = firstPause; !signal.aborted; pause = Math.min(2 * pause, longestPause)) {
    try {
      const answer = await request(path, { signal, headers: { Accept: 'text/event-stream' } });
      if (answer.ok) {
        pause = firstPause;
        await read(answer.body, handle);
      }
    } catch { /* reopened below */ }
    await new Promise((wake) => {
      const timer = setTimeout(wake, pause);
      signal.addEventListener('abort', () => { clearTimeout(timer); wake(); }, { once: true });
    });
  }
}

// read parses the events of a stream until it ends.
async function read(body, handle) {
  const chunks = body.pipeThrough(new TextDecoderStream()).getReader();
  let text = '';
  for (let part = await chunks.read(); !part.done; part = await chunks.read()) {
    text += part.value;
    for (let end = text.indexOf('\n\n'); end >= 0; end = text.indexOf('\n\n')) {
      const fields = new Map(text.slice(0, end).split('\n').map((l) => [l.slice(0, l.indexOf(':')), l.slice(l.indexOf(':') + 1).trim()]));
      if (fields.has('data')) handle(fields.get('event') || 'message', JSON.parse(fields.get('data')));
      text = text.slice(end + 2);
    }
  }
}
