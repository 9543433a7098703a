// The pools of a user: candidates by source and score, deferred pins, and the shares of the sources.

import { $, bar, h, updateList, renderIfChanged, setBar, setText } from './dom.js';
import { call, ofUser, query } from './api.js';
import { ago, count, name, sourceClass, unread, without } from './format.js';
import { app, current } from './app.js';
import { shares } from './plots.js';
import { scoreOf, titleOf } from './scores.js';
import { opener } from './why.js';

const first = 25, most = 1000, step = 100; // candidates shown per pool
const deferredShown = 36;
const limits = new Map(); // source → number of shown candidates
const noneDeferred = 'No pin is deferred: no candidate is too far below the best.';
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
  const deferred = new Map(state.deferred.map((x) => [x.pin, x]));
  showMix(state.sources);
  showDeferred(state.deferred, state.degraded.length === 0);
  updateList($('pools'), pools, (p) => p.source, makePool, (e, p) => updatePool(e, p, deferred));
}

function showMix(sources) {
  const shown = sources.reduce((n, s) => n + s.shown, 0);
  const rows = sources.map((s) => ({ name: s.source, target: s.target, actual: shown ? Math.round(1000 * s.shown / shown) / 1000 : 0 }));
  renderIfChanged($('pools-mix'), rows, () => shares('Shares of impressions', rows, 'by source; newer impressions count more'));
}

// showDeferred shows the deferred pins. complete: the state has all of them.
function showDeferred(list, complete) {
  setText($('deferred-none'), list.length ? '' : complete ? noneDeferred : 'Deferred pins are unknown.');
  setText($('deferred-more'), list.length > deferredShown ? `and ${list.length - deferredShown} more` : '');
  updateList($('deferred'), list.slice(0, deferredShown), (x) => x.pin, (x) => makeCandidate(x.pin), (line, x) => {
    line.classList.add('deferred');
    setBar(line, x.since ? `deferred ${ago(x.since)}` : 'weak', 0);
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

// updatePool shows scores relative to the best, because only differences matter.
function updatePool(e, p, deferred) {
  const scores = p.items.map((i) => i.score);
  const low = Math.min(...scores), high = Math.max(...scores);
  e.querySelector('h2 span').textContent = ` ${count(p.total, 'candidate', 'candidates')}${p.items.length ? `, best ${scoreOf(high)}` : ''}`;
  e.querySelector('.more').hidden = p.items.length >= p.total || p.items.length >= most;
  updateList(e.querySelector('ol'), p.items, (i) => i.pin, (i) => makeCandidate(i.pin), (line, i) => {
    const back = deferred.get(i.pin);
    line.classList.toggle('deferred', Boolean(back));
    const below = i.score === high ? 'best' : `−${(high - i.score).toFixed(3)}`;
    setBar(line, back ? `${below} · ${back.since ? 'deferred' : 'weak'}` : below, high > low ? 0.03 + 0.97 * (i.score - low) / (high - low) : 1);
    line.title = `${i.pin} by ${i.author}, ${ago(i.time)}, ${titleOf(i.score)}`;
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
  for (const id of ['pools', 'deferred']) $(id).replaceChildren();
  for (const id of ['pools-degraded', 'deferred-none', 'deferred-more']) setText($(id), '');
  renderIfChanged($('pools-mix'), null, () => []);
}
