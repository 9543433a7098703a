// The calls of the API, and its streams of events.

// Problem is an answer that is none: a problem document, or a server that does not answer.
export class Problem extends Error {
  constructor(status, body, fallback) {
    super(body.detail || fallback);
    this.status = status; // 0: no answer at all
    this.errors = body.errors || [];
  }
}

let token = remembered();
let ask = async () => null; // asks the person for a token; null: there is none
let asking = null; // the question under way: one for all calls
let declined = false; // the person has said not to have one: then it is not asked again and again

// onUnknown has calls that are refused for want of a token ask for one, with what was said of it.
export function onUnknown(question) {
  ask = question;
}

// askAgain has the next refused call ask, though the person declined before.
export function askAgain() {
  declined = false;
}

function remembered() {
  try { return sessionStorage.getItem('token') || ''; } catch { return ''; }
}

function remember(text) {
  token = text;
  try { sessionStorage.setItem('token', text); } catch { /* then it is asked for again */ }
}

function headers(more) {
  return token ? { ...more, Authorization: `Bearer ${token}` } : more;
}

const patience = 20000; // ms for an answer that has no signal of its own

// send fetches a path, with the token if there is one.
function send(path, options) {
  const signal = options.signal || AbortSignal.timeout(options.patience || patience);
  return fetch(path, { ...options, signal, headers: headers(options.headers) }).catch((error) => {
    if (error.name === 'AbortError') throw error;
    throw new Problem(0, {}, 'the server does not answer');
  });
}

// request sends; refused for want of a token it asks for one, and then once more.
async function request(path, options = {}) {
  const used = token;
  const answer = await send(path, options);
  if (answer.status !== 401 || declined) return answer;
  if (token === used) {
    const said = await answer.clone().json().catch(() => ({}));
    asking ||= ask(said.detail || '').then((text) => {
      if (text) remember(text);
      else declined = true;
    }).finally(() => { asking = null; });
    await asking;
  }
  return token === used ? answer : send(path, options);
}

// call asks the API; what is not answered well is a Problem.
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

// query writes a query string, values of which may hold anything.
export const query = (values) => `?${new URLSearchParams(values)}`;

const firstPause = 500, longestPause = 15000; // ms before a stream that ended is opened again

// listen calls heard with the name and the data of every server-sent event of a path, and opens the stream again when it
// ends, until the function that it returns is called. (An EventSource cannot send a token.)
export function listen(path, heard) {
  const end = new AbortController();
  follow(path, heard, end.signal);
  return () => end.abort();
}

async function follow(path, heard, signal) {
  for (let pause = firstPause; !signal.aborted; pause = Math.min(2 * pause, longestPause)) {
    try {
      const answer = await request(path, { signal, headers: { Accept: 'text/event-stream' } });
      if (answer.ok) {
        pause = firstPause;
        await read(answer.body, heard);
      }
    } catch { /* it is opened again */ }
    await new Promise((wake) => {
      const timer = setTimeout(wake, pause);
      signal.addEventListener('abort', () => { clearTimeout(timer); wake(); }, { once: true });
    });
  }
}

// read takes events out of a stream until it ends.
async function read(body, heard) {
  const chunks = body.pipeThrough(new TextDecoderStream()).getReader();
  let text = '';
  for (let part = await chunks.read(); !part.done; part = await chunks.read()) {
    text += part.value;
    for (let end = text.indexOf('\n\n'); end >= 0; end = text.indexOf('\n\n')) {
      const fields = new Map(text.slice(0, end).split('\n').map((l) => [l.slice(0, l.indexOf(':')), l.slice(l.indexOf(':') + 1).trim()]));
      if (fields.has('data')) heard(fields.get('event') || 'message', JSON.parse(fields.get('data')));
      text = text.slice(end + 2);
    }
  }
}
