// The console. Everything shown comes from the API and goes in as text, never as markup.

const $ = (id) => document.getElementById(id);
const pageSize = 24; // items of a page: fills rows of two, three and four cards
const poolSize = 8; // candidates shown of a pool
const every = 1000; // ms between looks at pools, features and pipeline, while the page is visible
const demoUsers = ['user:ada', 'user:emil', 'user:grace', 'user:nils', 'user:pablo'];

let user = '';
let cursor = null; // of the next older page
let shown = 0; // items on the page
let frozen = false; // an item that was shown before is on the page
let mix = new Map(); // items on the page by source
let sources = new Set(); // whose pools are shown
let known = false; // the API knows the user: what changes by itself is asked for
let events = null; // the stream of new-item counts
let visit = 0; // numbers visits, so that a late answer of an earlier one is dropped
let definitions = []; // of the features of a user

// element makes <tag class>, with text or children; null is left out.
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
const say = (text) => { $('live').textContent = text; };

function notice(text) {
  $('notice').textContent = text;
  $('notice').hidden = !text;
}

// put renders into an element, unless it would be what is there already: a reader's selection stays.
function put(id, data, render) {
  const text = JSON.stringify(data);
  if ($(id).dataset.shows === text) return;
  $(id).dataset.shows = text;
  $(id).replaceChildren(...render(data));
}

const relative = new Intl.RelativeTimeFormat(undefined, { numeric: 'auto', style: 'short' });

// ago says how long before now a moment was.
function ago(time) {
  const seconds = (Date.parse(time) - Date.now()) / 1000;
  const units = [['year', 31557600], ['month', 2629800], ['day', 86400], ['hour', 3600], ['minute', 60]];
  const [unit, size] = units.find(([, s]) => Math.abs(seconds) >= s) || ['second', 1];
  return relative.format(Math.round(seconds / size), unit);
}

// ---- the feed

// visitFeed takes new items and shows them on top of what was shown before.
async function visitFeed() {
  const mine = ++visit;
  $('fresh').hidden = true;
  try {
    const page = await call(path(`feed?limit=${pageSize}&feed=${encodeURIComponent($('name').value)}`));
    if (mine !== visit) return;
    clear();
    show(page);
    if (!known) listen();
    known = true;
    remember(user);
    say(`${page.items.length} items, ${page.items.filter((i) => i.new).length} of them new`);
  } catch (error) {
    if (mine !== visit) return;
    notice(`The feed of ${user} could not be read: ${error.message}`);
  }
}

function clear() {
  $('items').replaceChildren();
  shown = 0;
  frozen = false;
  mix = new Map();
}

async function older() {
  const mine = visit;
  $('more').disabled = true; // one page at a time
  try {
    const page = await call(path(`feed?limit=${pageSize}&cursor=${encodeURIComponent(cursor)}`));
    if (mine === visit) show(page);
  } catch (error) {
    if (mine === visit) notice(`Older items could not be read: ${error.message}`);
  }
  $('more').disabled = false;
}

function show(page) {
  cursor = page.next;
  $('more').hidden = !cursor;
  notice(page.degraded.length ? `Answered without: ${page.degraded.join(', ')}.` : '');
  for (const item of page.items) add(item);
  $('mix').textContent = [...mix].sort((a, b) => b[1] - a[1]).map(([source, n]) => `${n} ${source}`).join(' · ');
  $('empty').hidden = shown > 0;
  $('empty').replaceChildren(element('p', '', 'Nothing here yet'),
    element('p', 'quiet', `Nothing waits for ${name(user)}, and nothing was shown before. What arrives is announced here.`));
}

function add(item) {
  if (!item.new && !frozen) {
    frozen = true;
    $('items').append(element('li', 'divide', 'shown before'));
  }
  shown++;
  mix.set(item.source, (mix.get(item.source) || 0) + 1);
  if (item.source !== 'explore') sources.add(item.source);
  $('items').append(card(item, shown));
}

function card(item, place) {
  const time = element('time', '', ago(item.time));
  time.dateTime = item.time;
  time.title = new Date(item.time).toLocaleString();
  const score = element('span', '', `score ${item.score.toFixed(2)}`);
  const about = element('div', 'about',
    element('div', 'facts', element('strong', '', name(item.author)), item.board ? element('span', '', name(item.board)) : null),
    element('div', 'facts', time, score),
    element('div', 'tags', element('span', 'tag source', item.source),
      ...item.interests.slice(0, 4).map((i) => element('span', 'tag', name(i)))));
  const whole = element('li', 'card');
  about.append(acts(item, whole));
  whole.append(tile(item, place, whole), about);
  return whole;
}

// tile stands for the picture that a pin does not have: colours from its id, with the title on them.
function tile(item, place, whole) {
  const t = element('div', 'tile', element('span', 'place', String(place)),
    item.new ? element('span', 'new', 'new') : null, element('h3', '', link(item, whole)));
  const h = hash(item.pin);
  t.style.setProperty('--hue', h % 360);
  t.style.setProperty('--turn', `${(h >>> 9) % 360}deg`);
  t.style.setProperty('--x', `${10 + ((h >>> 13) % 80)}%`);
  t.style.setProperty('--y', `${5 + ((h >>> 19) % 45)}%`);
  return t;
}

// hash is FNV-1a over the text, mixed once more so that neighbours differ in every bit.
function hash(text) {
  let h = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) h = Math.imul(h ^ text.charCodeAt(i), 0x01000193);
  h = Math.imul(h ^ (h >>> 16), 0x45d9f3b);
  return (h ^ (h >>> 16)) >>> 0;
}

// link makes an anchor of an address of the web, and plain text of any other. Following it is a click.
function link(item, whole) {
  const title = item.title || name(item.pin);
  if (!/^https?:\/\//i.test(item.link)) return title;
  const a = element('a', '', title);
  a.href = item.link;
  a.rel = 'noopener noreferrer';
  a.target = '_blank';
  a.addEventListener('click', () => act('click', item, whole));
  return a;
}

function acts(item, whole) {
  return element('div', 'acts', ...['save', 'click', 'hide'].map((verb) => {
    const b = element('button', '', verb[0].toUpperCase() + verb.slice(1));
    b.type = 'button';
    b.dataset.verb = verb;
    b.setAttribute('aria-pressed', 'false');
    b.setAttribute('aria-label', `${verb} ${item.title || name(item.pin)}`);
    b.addEventListener('click', () => act(verb, item, whole));
    return b;
  }));
}

// act publishes an action of the user; it is in the live features within a second.
async function act(verb, item, whole) {
  const event = { stream: 'actions', id: eventID(), time: new Date().toISOString(), actor: user, verb, object: item.pin, surface: 'console' };
  try {
    await call('/v1/events', { method: 'POST', headers: { 'Content-Type': 'application/x-ndjson' }, body: JSON.stringify(event) });
    whole.querySelector(`[data-verb=${verb}]`).setAttribute('aria-pressed', 'true');
    if (verb === 'hide') whole.classList.add('gone');
    say(`${verb} sent`);
  } catch (error) {
    notice(`${verb} was not taken: ${error.message}`);
  }
}

// eventID is 128 random bits. (crypto.randomUUID is there on secure origins only.)
function eventID() {
  return `console/${[...crypto.getRandomValues(new Uint8Array(16))].map((b) => b.toString(16).padStart(2, '0')).join('')}`;
}

// ---- new items

function listen() {
  events = new EventSource(path('feed/events'));
  events.addEventListener('new', (e) => {
    const { count } = JSON.parse(e.data);
    $('fresh').textContent = count >= 100 ? '100+ new items' : `${count} new item${count === 1 ? '' : 's'}`;
    $('fresh').hidden = count === 0;
  });
}

// ---- pools, features, pipeline

async function pools() {
  const mine = visit;
  const all = await Promise.all([...sources].map((s) => call(path(`pools?source=${encodeURIComponent(s)}&limit=${poolSize}`))));
  if (mine === visit) put('pools', all.sort((a, b) => b.total - a.total), (list) => list.map(pool));
}

// pool shows scores as what they are below the best: they are large, and only their differences count.
function pool(p) {
  const scores = p.items.map((i) => i.score);
  const low = Math.min(...scores), high = Math.max(...scores);
  const best = p.items.length ? ` · best ${high.toFixed(3)}` : '';
  return element('div', 'pool',
    element('h3', '', p.source, element('span', '', `${p.total} waiting${best}`)),
    ...p.items.map((i) => row(name(i.pin), i.score === high ? 'best' : `−${(high - i.score).toFixed(4)}`, high > low ? (i.score - low) / (high - low) : 1)));
}

// row is one line with a bar behind it; part is the bar's length, 0 to 1, and null for none.
function row(label, value, part) {
  const r = element('div', 'row', element('span', '', label), element('span', '', value));
  r.firstElementChild.title = label;
  r.style.setProperty('--part', part === null ? '0' : `${Math.round(4 + 96 * part)}%`);
  return r;
}

async function features() {
  const mine = visit;
  if (!definitions.length) return;
  const answer = await call('/v1/features', { method: 'POST', headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ features: definitions.map((d) => d.name), users: [user] }) });
  if (mine !== visit) return;
  $('features-as-of').textContent = ` at ${new Date(answer.as_of).toLocaleTimeString()}`;
  const values = answer.values[user] || {};
  put('features', definitions.map((d) => [d, values[d.name]]), (list) => list.map(([d, v]) => feature(d, v)));
}

function feature(d, v) {
  const f = element('div', 'feature', element('h3', '', d.name, element('span', '', d.window)), value(v));
  f.title = d.description || '';
  return f;
}

// value shows a number, counts by group, a list of actions or of values, or a vector.
function value(v) {
  if (v === null || v === undefined) return element('p', 'none', 'nothing yet');
  if (typeof v === 'number') return element('p', 'number', short(v));
  if (Array.isArray(v)) return list(v);
  const groups = Object.entries(v).sort((a, b) => b[1] - a[1]).slice(0, 6);
  if (!groups.length) return element('p', 'none', 'nothing yet');
  const most = Math.max(...groups.map(([, n]) => n), 0);
  return element('div', '', ...groups.map(([k, n]) => row(name(k), short(n), most > 0 ? Math.max(n, 0) / most : 0)));
}

const short = (n) => n.toLocaleString(undefined, { maximumFractionDigits: 3 });

function list(v) {
  if (!v.length) return element('p', 'none', 'nothing yet');
  if (typeof v[0] === 'number') return element('p', 'none', `[${v.slice(0, 4).map((x) => x.toFixed(3)).join(', ')} …], ${v.length} numbers`);
  return element('div', '', ...v.slice(0, 5).map((x) => (x.verb
    ? row(`${x.verb} ${name(x.object)}`, new Date(x.timestamp).toLocaleTimeString(), null)
    : row(name(x.value), short(x.count), x.count / v[0].count))));
}

async function pipeline() {
  const s = await call('/v1/status');
  state(s.ready ? `ready · ${s.version}` : s.missing.join('; '), s.ready);
  put('pipeline', s.groups.map((g) => [g.group, short(Math.round(g.records_per_second * 10) / 10), lag(g.lag), g.counters.deadLetter, g.starts - 1]), (rows) => [
    element('table', '',
      element('thead', '', element('tr', '', ...['group', 'records/s', 'lag', 'dead letters', 'restarts'].map(heading))),
      element('tbody', '', ...rows.map((r) => element('tr', '', ...r.map((c, i) => element('td', i >= 3 && c > 0 ? 'bad' : '', String(c)))))))]);
}

function heading(text) {
  const th = element('th', '', text);
  th.scope = 'col';
  return th;
}

const lag = (byTopic) => (byTopic ? short(Object.values(byTopic).reduce((a, b) => a + b, 0)) : 'unknown');

function state(text, good) {
  if ($('state-text').textContent !== text) $('state-text').textContent = text; // it is announced when it changes
  $('state').firstElementChild.className = `dot ${good ? 'good' : 'bad'}`;
}

// look refreshes what changes by itself, one round after another. What fails stays as it was until the next round.
async function look() {
  if (!document.hidden) {
    const rounds = [pipeline()];
    if (known) rounds.push(pools(), features());
    const failed = (await Promise.allSettled(rounds)).find((r) => r.status === 'rejected' && r.reason instanceof TypeError);
    if (failed) state('the server does not answer', false);
    else if (known && events.readyState === EventSource.CLOSED) listen(); // it was refused: browsers do not try again
  }
  setTimeout(look, every);
}

// ---- who

// choose visits a user's feed; the page's address names both.
function choose(id, feed) {
  user = id;
  $('user').value = id;
  $('name').value = feed;
  document.title = `${name(id)} · smartfeed console`;
  leave();
  visitFeed();
}

// leave takes what belongs to the user before off the page.
function leave() {
  if (events) events.close();
  known = false;
  sources = new Set(['following', 'interest']);
  clear();
  $('mix').textContent = '';
  $('features-as-of').textContent = '';
  $('more').hidden = true;
  $('fresh').hidden = true;
  notice('');
  put('pools', null, () => []);
  put('features', null, () => []);
}

// lookedAt are the users of before; a browser may not let a page remember.
function lookedAt() {
  try {
    const list = JSON.parse(localStorage.getItem('users') || '[]');
    return Array.isArray(list) ? list.filter((u) => typeof u === 'string') : [];
  } catch {
    return [];
  }
}

function remember(id) {
  const list = [id, ...lookedAt().filter((u) => u !== id)].slice(0, 20);
  try { localStorage.setItem('users', JSON.stringify(list)); } catch { /* then it does not */ }
  suggest();
}

function suggest() {
  const all = [...new Set([...lookedAt(), ...demoUsers])];
  $('users').replaceChildren(...all.map((u) => { const o = element('option'); o.value = u; return o; }));
  if ($('suggested')) {
    $('suggested').replaceChildren(...all.slice(0, 8).map((u) => {
      const b = element('button', '', name(u));
      b.type = 'button';
      b.addEventListener('click', () => go(u));
      return b;
    }));
  }
}

function go(id) {
  history.pushState(null, '', `?user=${encodeURIComponent(id)}&feed=${encodeURIComponent($('name').value)}`);
  choose(id, $('name').value);
}

$('who').addEventListener('submit', (e) => {
  e.preventDefault();
  const typed = $('user').value.trim();
  go(typed.includes(':') ? typed : `user:${typed}`);
});
$('name').addEventListener('change', () => { if (user) go(user); });
$('more').addEventListener('click', older);
$('fresh').addEventListener('click', visitFeed);
window.addEventListener('popstate', start);

function start() {
  const query = new URLSearchParams(location.search);
  if (query.get('user')) choose(query.get('user'), query.get('feed') === 'plain' ? 'plain' : 'home');
}

suggest();
start();
definitions = (await call('/v1/features').catch(() => ({ features: [] }))).features.filter((d) => d.entity === 'user');
look();
