// Experiment arms of each feed: users, visits, items, and the rates of actions with intervals.

import { $, h, renderIfChanged, table } from './dom.js';
import { call, query } from './api.js';
import { percent, unread, whole } from './format.js';

const pause = 10000; // ms between refreshes: each one scans the insights
let last = 0;

// refresh reloads the numbers if they may have changed.
export async function refresh() {
  if (Date.now() - last < pause) return;
  last = Date.now();
  const days = $('experiment-days').value;
  try {
    const answer = await call(`/v1/insights/experiments${query({ days })}`);
    if (days === $('experiment-days').value) renderIfChanged($('experiments'), answer, () => answer.feeds.map(show));
  } catch (error) {
    renderIfChanged($('experiments'), error.message, () => h('p', { class: 'notice' }, unread('the experiments', error)));
  }
}

const armName = (arm) => arm || '–';

function show(x) {
  return h('section', { 'aria-label': `Feed ${x.feed}` }, h('h2', null, `Feed ${x.feed}`), sampleRatio(x.sample_ratio),
    scrolled(`Arms of ${x.feed}`, ['arm', 'share', 'users', 'visits', 'items'],
      x.arms.map((a) => [armName(a.arm), a.share ? percent(a.share) : 'unknown', whole(a.users), whole(a.visits), whole(a.items)])),
    scrolled(`Actions in ${x.feed}`, ['action', 'arm', 'count', 'per item', 'per visit', 'difference per item', 'days needed'],
      x.arms[0].actions.flatMap((_, i) => x.arms.map((a) => ratesOf(armName(a.arm), a.actions[i])))));
}

const ratesOf = (arm, r) => [r.verb, arm, whole(r.count), estimate(r.per_item), estimate(r.per_visit), estimate(r.difference), r.days_needed === null ? '–' : r.days_needed.toFixed(1)];

const scrolled = (title, head, rows) => h('div', { class: 'scroll sheet', tabindex: '0', role: 'region', 'aria-label': title }, table(title, head, rows));

const estimate = (e) => (e ? `${e.value.toFixed(4)} [${e.low.toFixed(4)}, ${e.high.toFixed(4)}]` : '–');

function sampleRatio(r) {
  if (!r) return null;
  if (!r.mismatch) return h('p', { class: 'quiet' }, `The users match the shares of the arms (p = ${r.p_value.toPrecision(2)}).`);
  return h('p', { class: 'notice' }, `Sample ratio mismatch (p = ${r.p_value.toPrecision(2)}): the users do not match the shares of the arms, so do not compare the arms.`);
}

// start connects the form.
export function start() {
  $('experiment-days').addEventListener('change', () => {
    last = 0;
    refresh();
  });
}

// open makes the next refresh reload the data.
export function open() {
  last = 0;
}
