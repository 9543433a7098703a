// The console. Everything shown comes from the API and goes in as text, never as markup.

const $ = (id) => document.getElementById(id);
const poolSize = 8; // candidates shown of a pool
const every = 1000; // ms between looks at pools, features and pipeline, while the page is visible

let user = '';
let cursor = null;
let events = null; // the stream of new-item counts
let visit = 0; // numbers visits, so that a late answer of an earlier one is dropped

// element makes <tag class>, with text or children.
function element(tag, className, ...children) {
  const e = document.createElement(tag);
  if (className) e.className = className;
  e.append(...children.filter((c) => c !== null && c !== undefined));
  return e;
}

// call asks the API; a problem document becomes an Error with its words.
async function call(path, options) {
  const answer = await fetch(path, options);
  const body = await answer.json().catch(() => ({}));
  if (!answer.ok) throw new Error(body.detail || `${answer.status} ${answer.statusText}`);
  return body;
}

const path = (rest) => `/v1/users/${encodeURIComponent(user)}/${rest}`;
const name = (id) => id.slice(id.indexOf(':') + 1);

function notice(text) {
  $('notice').textContent = text;
  $('notice').hidden = !text;
}

const say = (text) => { $('live').textContent = text; };

// ---- the feed

async function visitFeed() {
  const mine = ++visit;
  $('fresh').hidden = true;
  try {
    const page = await call(path(`feed?limit=25&feed=${encodeURIComponent($('name').value)}`));
    if (mine !== visit) return;
    $('items').replaceChildren();
    show(page);
    const fresh = page.items.filter((i) => i.new).length;
    say(`${page.items.length} items, ${fresh} of them new`);
  } catch (error) {
    if (mine === visit) notice(`The feed of ${user} could not be read: ${error.message}`);
  }
}

async function older() {
  const mine = visit;
  try {
    const page = await call(path(`feed?limit=25&cursor=${encodeURIComponent(cursor)}`));
    if (mine === visit) show(page);
  } catch (error) {
    notice(`Older items could not be read: ${error.message}`);
  }
}

function show(page) {
  cursor = page.next;
  $('more').hidden = !cursor;
  notice(page.degraded.length ? `Answered without: ${page.degraded.join(', ')}.` : '');
  for (const item of page.items) $('items').append(card(item));
  $('empty').hidden = $('items').childElementCount > 0;
  $('empty').textContent = `Nothing is waiting for ${user} and nothing has been shown before.`;
}

function card(item) {
  const title = item.title || item.pin;
  const tile = element('div', 'tile', (title.match(/[\p{L}\p{N}]/u) || ['·'])[0].toUpperCase());
  tile.style.setProperty('--hue', hue(item.board || item.pin));
  tile.setAttribute('aria-hidden', 'true');
  const tags = element('div', 'tags',
    item.new ? element('span', 'tag new', 'new') : null,
    element('span', 'tag', item.source),
    ...(item.interests || []).slice(0, 6).map((i) => element('span', 'tag', name(i))));
  const facts = element('div', 'facts',
    element('span', '', name(item.author)),
    item.board ? element('span', '', name(item.board)) : null,
    element('span', '', new Date(item.time).toLocaleString()),
    element('span', '', `score ${item.score.toFixed(3)}`));
  const body = element('div', '', element('h3', '', link(item.link, title)), facts, tags);
  const whole = element('li', 'card', tile, body);
  body.append(acts(item, whole));
  return whole;
}

// link makes an anchor of an address of the web, and plain text of any other.
function link(address, text) {
  if (!/^https?:\/\//i.test(address || '')) return document.createTextNode(text);
  const a = element('a', '', text);
  a.href = address;
  a.rel = 'noopener noreferrer';
  a.target = '_blank';
  return a;
}

function hue(text) {
  let h = 0;
  for (const c of text) h = (h * 31 + c.codePointAt(0)) % 360;
  return h;
}

function acts(item, whole) {
  return element('div', 'acts', ...['save', 'click', 'hide'].map((verb) => {
    const b = element('button', '', verb[0].toUpperCase() + verb.slice(1));
    b.type = 'button';
    b.setAttribute('aria-pressed', 'false');
    b.setAttribute('aria-label', `${verb} ${item.title || item.pin}`);
    b.addEventListener('click', () => act(verb, item, b, whole));
    return b;
  }));
}

async function act(verb, item, button, whole) {
  const event = { stream: 'actions', id: `console/${crypto.randomUUID()}`, time: new Date().toISOString(),
    actor: user, verb, object: item.pin, surface: 'console' };
  try {
    await call('/v1/events', { method: 'POST', headers: { 'Content-Type': 'application/x-ndjson' }, body: JSON.stringify(event) });
    button.setAttribute('aria-pressed', 'true');
    whole.classList.toggle('gone', verb === 'hide');
    say(`${verb} sent`);
  } catch (error) {
    notice(`${verb} was not taken: ${error.message}`);
  }
}

// ---- new items

function listen() {
  if (events) events.close();
  events = new EventSource(path('feed/events'));
  events.addEventListener('new', (e) => {
    const { count } = JSON.parse(e.data);
    $('fresh').textContent = count >= 100 ? '100 or more new items' : `${count} new item${count === 1 ? '' : 's'}`;
    $('fresh').hidden = count === 0;
  });
}

// ---- pools, features, pipeline

async function pools() {
  const sources = ['following', 'interest', 'related'];
  const all = await Promise.all(sources.map((s) => call(path(`pools?source=${s}&limit=${poolSize}`))));
  $('pools').replaceChildren(...all.filter((p) => p.total > 0 || p.source !== 'related').map(pool));
}

function pool(p) {
  const scores = p.items.map((i) => i.score);
  const low = Math.min(...scores), high = Math.max(...scores);
  return element('div', 'pool',
    element('h3', '', p.source, element('span', '', `${p.total} waiting`)),
    ...p.items.map((i) => row(name(i.pin), i.score.toFixed(3), high > low ? (i.score - low) / (high - low) : 1)));
}

// row is one line with a bar behind it; part is the bar's length, 0 to 1.
function row(label, value, part) {
  const r = element('div', 'row', element('span', '', label), element('span', '', value));
  r.style.setProperty('--part', `${Math.round(8 + 92 * part)}%`);
  return r;
}

let definitions = [];

async function features() {
  const names = definitions.filter((d) => d.entity === 'user').map((d) => d.name);
  if (!names.length) return;
  const answer = await call('/v1/features', { method: 'POST', headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ features: names, users: [user] }) });
  const values = answer.values[user] || {};
  $('features-as-of').textContent = `What this user did, as recommenders read it at ${new Date(answer.as_of).toLocaleTimeString()}.`;
  $('features').replaceChildren(...names.map((n) => element('div', 'feature', element('h3', '', n), value(values[n]))));
}

// value shows a number, counts by group, a list of actions or of values, or a vector.
function value(v) {
  if (v === null || v === undefined) return element('p', 'none', 'nothing yet');
  if (typeof v === 'number') return element('p', '', String(Math.round(v * 1000) / 1000));
  if (Array.isArray(v)) return list(v);
  const groups = Object.entries(v).sort((a, b) => b[1] - a[1]).slice(0, 8);
  if (!groups.length) return element('p', 'none', 'nothing yet');
  const most = Math.max(...groups.map(([, n]) => n));
  return element('div', '', ...groups.map(([k, n]) => row(name(k), String(Math.round(n * 100) / 100), n / most)));
}

function list(v) {
  if (!v.length) return element('p', 'none', 'nothing yet');
  if (typeof v[0] === 'number') return element('p', 'none', `[${v.slice(0, 4).map((x) => x.toFixed(3)).join(', ')} …] of ${v.length}`);
  return element('div', '', ...v.slice(0, 6).map((x) => (x.verb
    ? row(`${x.verb} ${name(x.object)}`, new Date(x.timestamp).toLocaleTimeString(), 0)
    : row(name(x.value), String(x.count), x.count / v[0].count))));
}

async function pipeline() {
  const s = await call('/v1/status');
  $('state-text').textContent = s.ready ? `ready · ${s.version}` : s.missing.join('; ');
  $('state').firstElementChild.className = `dot ${s.ready ? 'good' : 'bad'}`;
  const head = element('tr', '', ...['group', 'records/s', 'lag', 'dead letters', 'starts'].map((t) => element('th', '', t)));
  const lines = s.groups.map((g) => element('tr', '', ...[
    g.group, g.records_per_second.toFixed(1), Object.values(g.lag || {}).reduce((a, b) => a + b, 0), g.counters.deadLetter, g.starts,
  ].map((t) => element('td', '', String(t)))));
  $('pipeline').replaceChildren(element('table', '', element('thead', '', head), element('tbody', '', ...lines)));
}

// look refreshes what changes by itself, one round after another.
async function look() {
  if (!document.hidden) {
    const rounds = [pipeline()];
    if (user) rounds.push(pools(), features());
    const failed = (await Promise.allSettled(rounds)).find((r) => r.status === 'rejected');
    if (failed && failed.reason instanceof TypeError) {
      $('state-text').textContent = 'the server does not answer';
      $('state').firstElementChild.className = 'dot bad';
    }
  }
  setTimeout(look, every);
}

// ---- who

function choose(id, feed) {
  user = id;
  $('user').value = id;
  if (feed) $('name').value = feed;
  document.title = `${name(id)} · smartfeed console`;
  remember(id);
  listen();
  visitFeed();
}

function remember(id) {
  const known = [id, ...JSON.parse(localStorage.getItem('users') || '[]').filter((u) => u !== id)].slice(0, 20);
  localStorage.setItem('users', JSON.stringify(known));
  const suggestions = new Set([...known, 'user:ada', 'user:emil', 'user:grace', 'user:nils', 'user:pablo']);
  $('users').replaceChildren(...[...suggestions].map((u) => { const o = element('option'); o.value = u; return o; }));
}

$('who').addEventListener('submit', (e) => {
  e.preventDefault();
  const typed = $('user').value.trim();
  const id = typed.includes(':') ? typed : `user:${typed}`;
  history.pushState(null, '', `?user=${encodeURIComponent(id)}&feed=${encodeURIComponent($('name').value)}`);
  choose(id);
});
$('more').addEventListener('click', older);
$('fresh').addEventListener('click', visitFeed);
window.addEventListener('popstate', start);

function start() {
  const query = new URLSearchParams(location.search);
  if (query.get('user')) choose(query.get('user'), query.get('feed'));
}

definitions = (await call('/v1/features').catch(() => ({ features: [] }))).features;
start();
look();
