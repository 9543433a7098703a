// The pools of a user: what waits, by score and source, what is held back, and how the sources stand.

import { $, bar, h, keyed, put, setBar, tell } from './dom.js';
import { call, ofUser, query } from './api.js';
import { ago, count, name, sourceClass, unread, without } from './format.js';
import { app, current } from './app.js';
import { shares } from './plots.js';
import { opener } from './why.js';

const first = 25, most = 1000, step = 100; // candidates shown of a pool
const heldShown = 36;
const limits = new Map(); // source → how many are shown
const noneHeld = 'Nothing is: no candidate is so much weaker than the best that a session would rather end.';
let panels = 0; // numbers the panels of why

// look asks for everything again, and shows what changed.
export async function look() {
  const matters = current();
  try {
    const [state, pools] = await ask();
    if (matters()) show(state, pools);
  } catch (error) {
    if (matters()) tell($('pools-degraded'), unread('The pools', error));
    throw error;
  }
}

// ask returns what the feed remembers, and the pools in which something waits.
async function ask() {
  const state = await call(ofUser(app.user, `feed/state${query({ feed: app.feed })}`));
  const waiting = state.sources.filter((s) => s.waiting > 0);
  return [state, await Promise.all(waiting.map((s) => call(ofUser(app.user, `pools${query({ source: s.source, limit: limits.get(s.source) || first })}`))))];
}

function show(state, pools) {
  tell($('pools-degraded'), without(state.degraded));
  const held = new Map(state.held.map((x) => [x.pin, x]));
  showMix(state.sources);
  showHeld(state.held, state.degraded.length === 0);
  keyed($('pools'), pools, (p) => p.source, makePool, (e, p) => updatePool(e, p, held));
}

function showMix(sources) {
  const shown = sources.reduce((n, s) => n + s.shown, 0);
  const rows = sources.map((s) => ({ name: s.source, target: s.target, actual: shown ? Math.round(1000 * s.shown / shown) / 1000 : 0 }));
  put($('pools-mix'), rows, () => shares('Shares of what this user was shown', rows, 'by source, newer impressions weighing more'));
}

// showHeld shows what is held back; whole: of all that there is something is known.
function showHeld(list, whole) {
  tell($('held-none'), list.length ? '' : whole ? noneHeld : 'None is known of.');
  tell($('held-more'), list.length > heldShown ? `and ${list.length - heldShown} more` : '');
  keyed($('held'), list.slice(0, heldShown), (x) => x.pin, (x) => makeCandidate(x.pin), (line, x) => {
    line.classList.add('held');
    setBar(line, x.reason === 'deferred' ? `deferred ${ago(x.since)}` : 'weak', 0);
  });
}

function makePool(p) {
  return h('section', { class: `pool ${sourceClass(p.source)}`, 'aria-label': `Pool ${p.source}` },
    h('h2', null, p.source, h('span', { class: 'quiet' })),
    h('ol', { class: 'bars' }),
    h('p', null, h('button', { type: 'button', class: 'more', onclick: () => {
      limits.set(p.source, Math.min((limits.get(p.source) || first) + step, most));
      look().catch(() => {}); // the next look tells
    } }, 'Show more')));
}

// updatePool shows scores as what they are below the best: they are large, and only their differences count.
function updatePool(e, p, held) {
  const scores = p.items.map((i) => i.score);
  const low = Math.min(...scores), high = Math.max(...scores);
  e.querySelector('h2 span').textContent = ` ${count(p.total, 'waits', 'wait')}${p.items.length ? `, best ${high.toFixed(2)}` : ''}`;
  e.querySelector('.more').hidden = p.items.length >= p.total || p.items.length >= most;
  keyed(e.querySelector('ol'), p.items, (i) => i.pin, (i) => makeCandidate(i.pin), (line, i) => {
    const back = held.get(i.pin);
    line.classList.toggle('held', Boolean(back));
    const below = i.score === high ? 'best' : `−${(high - i.score).toFixed(3)}`;
    setBar(line, back ? `${below} · ${back.reason}` : below, high > low ? 0.03 + 0.97 * (i.score - low) / (high - low) : 1);
    line.title = `${i.pin} by ${i.author}, ${ago(i.time)}, score ${i.score}`;
  });
}

// makeCandidate makes the line of a pin, which opens to say why it waits.
function makeCandidate(pin) {
  const line = bar(name(pin), pin);
  const panel = h('div', { class: 'why', id: `why-of-${++panels}`, hidden: true });
  line.querySelector('.label').replaceChildren(opener(pin, name(pin), panel, { class: 'plain', title: 'Why does it wait?' }));
  line.append(panel);
  return line;
}

// leave takes what belongs to the user before off the page.
export function leave() {
  limits.clear();
  for (const id of ['pools', 'held']) $(id).replaceChildren();
  for (const id of ['pools-degraded', 'held-none', 'held-more']) tell($(id), '');
  put($('pools-mix'), null, () => []);
}
