// The pools of a user: candidates by source and score, held-back pins, and the shares of the sources.

import { $, bar, h, updateList, renderIfChanged, setBar, setText } from './dom.js';
import { call, ofUser, query } from './api.js';
import { ago, count, name, sourceClass, unread, without } from './format.js';
import { app, current } from './app.js';
import { shares } from './plots.js';
import { opener } from './why.js';

const first = 25, most = 1000, step = 100; // candidates shown per pool
const heldShown = 36;
const limits = new Map(); // source → number of shown candidates
const noneHeld = 'No pin is held back: no candidate is too far below the best.';
let panels = 0; // number of explanation panels so far

// refresh reloads the pools and updates the view.
export async function refresh() {
  const isCurrent = current();
  try {
    const [state, pools] = await load();
    if (isCurrent()) show(state, pools);
  } catch (error) {
    if (isCurrent()) setText($('pools-degraded'), unread('the pools', error));
    throw error;
  }
}

// load returns the state of the feed, and the pools that have candidates.
async function load() {
  const state = await call(ofUser(app.user, `feed/state${query({ feed: app.feed })}`));
  const waiting = state.sources.filter((s) => s.waiting > 0);
  return [state, await Promise.all(waiting.map((s) => call(ofUser(app.user, `pools${query({ source: s.source, limit: limits.get(s.source) || first })}`))))];
}

function show(state, pools) {
  setText($('pools-degraded'), without(state.degraded));
  const held = new Map(state.held.map((x) => [x.pin, x]));
  showMix(state.sources);
  showHeld(state.held, state.degraded.length === 0);
  updateList($('pools'), pools, (p) => p.source, makePool, (e, p) => updatePool(e, p, held));
}

function showMix(sources) {
  const shown = sources.reduce((n, s) => n + s.shown, 0);
  const rows = sources.map((s) => ({ name: s.source, target: s.target, actual: shown ? Math.round(1000 * s.shown / shown) / 1000 : 0 }));
  renderIfChanged($('pools-mix'), rows, () => shares('Shares of impressions', rows, 'by source; newer impressions count more'));
}

// showHeld shows the held-back pins. complete: the state has all of them.
function showHeld(list, complete) {
  setText($('held-none'), list.length ? '' : complete ? noneHeld : 'Held-back pins are unknown.');
  setText($('held-more'), list.length > heldShown ? `and ${list.length - heldShown} more` : '');
  updateList($('held'), list.slice(0, heldShown), (x) => x.pin, (x) => makeCandidate(x.pin), (line, x) => {
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
      refresh().catch(() => {}); // the next refresh shows the error
    } }, 'Show more')));
}

// updatePool shows scores relative to the best: absolute scores are large, and only differences matter.
function updatePool(e, p, held) {
  const scores = p.items.map((i) => i.score);
  const low = Math.min(...scores), high = Math.max(...scores);
  e.querySelector('h2 span').textContent = ` ${count(p.total, 'candidate', 'candidates')}${p.items.length ? `, best ${high.toFixed(2)}` : ''}`;
  e.querySelector('.more').hidden = p.items.length >= p.total || p.items.length >= most;
  updateList(e.querySelector('ol'), p.items, (i) => i.pin, (i) => makeCandidate(i.pin), (line, i) => {
    const back = held.get(i.pin);
    line.classList.toggle('held', Boolean(back));
    const below = i.score === high ? 'best' : `−${(high - i.score).toFixed(3)}`;
    setBar(line, back ? `${below} · ${back.reason}` : below, high > low ? 0.03 + 0.97 * (i.score - low) / (high - low) : 1);
    line.title = `${i.pin} by ${i.author}, ${ago(i.time)}, score ${i.score}`;
  });
}

// makeCandidate returns the line of a pin, which opens to explain the state of the pin.
function makeCandidate(pin) {
  const line = bar(name(pin), pin);
  const panel = h('div', { class: 'why', id: `why-of-${++panels}`, hidden: true });
  line.querySelector('.label').replaceChildren(opener(pin, name(pin), panel, { class: 'plain', title: 'Explain' }));
  line.append(panel);
  return line;
}

// reset removes the data of the previous user.
export function reset() {
  limits.clear();
  for (const id of ['pools', 'held']) $(id).replaceChildren();
  for (const id of ['pools-degraded', 'held-none', 'held-more']) setText($(id), '');
  renderIfChanged($('pools-mix'), null, () => []);
}
