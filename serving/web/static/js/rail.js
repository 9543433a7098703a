// What changes as a user acts, beside the feed: affinities, pools, features.

import { $, bar, h, keyed, setBar, tell } from './dom.js';
import { call, ofUser, query } from './api.js';
import { name, percent, short, sourceClass, unread, whole, without } from './format.js';
import { app, current } from './app.js';
import { ask, show } from './features.js';

const affinities = 8; // of the strongest

// look asks for what the user's feed remembers, and for the features. Who may not ask for the one is shown the other.
export async function look() {
  const matters = current();
  const [state, values] = await Promise.allSettled([call(ofUser(app.user, `feed/state${query({ feed: app.feed })}`)), ask()]);
  if (!matters()) return;
  tell($('rail-degraded'), lackOf(state, 'Affinities and pools'));
  tell($('rail-features-degraded'), lackOf(values, 'Features'));
  if (state.status === 'fulfilled') {
    showAffinities(state.value.affinities);
    showPools(state.value.sources);
  }
  if (values.status === 'fulfilled') show($('rail-features'), values.value, 4, 'h3');
  const failed = [state, values].find((r) => r.status === 'rejected');
  if (failed) throw failed.reason;
}

// lackOf says what is not in an answer, or that there is none.
const lackOf = (answer, what) => (answer.status === 'fulfilled' ? without(answer.value.degraded) : unread(what, answer.reason));

function showAffinities(list) {
  const most = list.length ? list[0].value : 1;
  keyed($('rail-affinities'), list.slice(0, affinities), (a) => a.facet, (a) => bar(name(a.facet), a.facet),
    (line, a) => setBar(line, short(a.value), a.value / most));
}

function showPools(sources) {
  const waiting = sources.filter((s) => s.waiting > 0);
  const most = Math.max(...waiting.map((s) => s.waiting), 1), shown = sum(sources.map((s) => s.shown));
  keyed($('rail-pools'), waiting, (s) => s.source, (s) => {
    const line = bar(s.source);
    line.classList.add(sourceClass(s.source));
    line.append(h('span', { class: 'note' }));
    return line;
  }, (line, s) => {
    tell(line.querySelector('.note'), `${shown ? `shown ${percent(s.shown / shown)}` : 'none shown yet'}, to be ${percent(s.target)}`);
    setBar(line, whole(s.waiting), s.waiting / most);
  });
}

const sum = (list) => list.reduce((a, b) => a + b, 0);

// leave takes what belongs to the user before off the page.
export function leave() {
  for (const id of ['rail-affinities', 'rail-pools', 'rail-features']) $(id).replaceChildren();
  for (const id of ['rail-degraded', 'rail-features-degraded']) tell($(id), '');
}
