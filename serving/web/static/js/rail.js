// The sidebar of the feed: affinities, pools and features, which change as the user acts.

import { $, bar, h, updateList, setBar, setText } from './dom.js';
import { call, ofUser, query } from './api.js';
import { name, percent, short, sourceClass, unread, whole, without } from './format.js';
import { app, current } from './app.js';
import { evaluateUser, show } from './features.js';

const affinities = 8; // maximum number

// refresh loads the state of the feed and the features. A token may permit only one of them, so each is shown without the other.
export async function refresh() {
  const isCurrent = current();
  const [state, values] = await Promise.allSettled([call(ofUser(app.user, `feed/state${query({ feed: app.feed })}`)), evaluateUser()]);
  if (!isCurrent()) return;
  setText($('rail-degraded'), problemOf(state, 'affinities and pools'));
  setText($('rail-features-degraded'), problemOf(values, 'the features'));
  if (state.status === 'fulfilled') {
    showAffinities(state.value.affinities);
    showPools(state.value.sources);
  }
  if (values.status === 'fulfilled') show($('rail-features'), values.value, 4, 'h3');
  const failed = [state, values].find((r) => r.status === 'rejected');
  if (failed) throw failed.reason;
}

// problemOf names the missing parts of an answer, or the reason why there is no answer.
const problemOf = (answer, what) => (answer.status === 'fulfilled' ? without(answer.value.degraded) : unread(what, answer.reason));

function showAffinities(list) {
  const most = list.length ? list[0].value : 1;
  updateList($('rail-affinities'), list.slice(0, affinities), (a) => a.facet, (a) => bar(name(a.facet), a.facet),
    (line, a) => setBar(line, short(a.value), a.value / most));
}

function showPools(sources) {
  const waiting = sources.filter((s) => s.waiting > 0);
  const most = Math.max(...waiting.map((s) => s.waiting), 1), shown = sum(sources.map((s) => s.shown));
  updateList($('rail-pools'), waiting, (s) => s.source, (s) => {
    const line = bar(s.source);
    line.classList.add(sourceClass(s.source));
    line.append(h('span', { class: 'note' }));
    return line;
  }, (line, s) => {
    setText(line.querySelector('.note'), `${shown ? `shown ${percent(s.shown / shown)}` : 'none shown yet'}, target ${percent(s.target)}`);
    setBar(line, whole(s.waiting), s.waiting / most);
  });
}

const sum = (list) => list.reduce((a, b) => a + b, 0);

// reset removes the data of the previous user.
export function reset() {
  for (const id of ['rail-affinities', 'rail-pools', 'rail-features']) $(id).replaceChildren();
  for (const id of ['rail-degraded', 'rail-features-degraded']) setText($(id), '');
}
