// Usage of the product: shares, funnels, trends, cohorts.

import { $, h, renderIfChanged, setText } from './dom.js';
import { call, query } from './api.js';
import { cohorts, columns, hours, lines, shares, steps } from './plots.js';
import { name } from './format.js';

const trends = [['daily', 'daily', 'curve-1'], ['new', 'new', 'curve-2'], ['resurrected', 'resurrected', 'curve-3'], ['became dormant', 'dormant', 'curve-4']];
const places = ['shares', 'funnel', 'growth', 'habit', 'cohorts', 'popularity']; // of the plots, in their order
const pause = 10000; // ms between refreshes: each one scans the insights
let last = 0;
let funnel = {}; // parameters of the request, and the duration as text

// refresh reloads the numbers if they may have changed. Each plot shows its own error.
export async function refresh() {
  if (Date.now() - last < pause) return;
  last = Date.now();
  await Promise.all([
    show('shares', () => call('/v1/status'), showShares),
    show('funnel', loadFunnel, (f) => steps('Funnel', f.steps, `users who took the steps in order within ${f.words}, in the last seven days`)),
    show('growth', () => call('/v1/insights/growth'), showGrowth),
    show('habit', () => call('/v1/insights/xd28s'), (x) => columns('Days of activity', x.xd28s.map((d) => ({ name: String(d.days), value: d.users })), 'users by the number of days on which they acted in the last 28 days')),
    show('cohorts', () => call('/v1/insights/retention'), (r) => cohorts('Cohorts', r.cohorts, 'users by the week of their first action, and the share that acted in each later week')),
    show('popularity', () => call(`/v1/insights/popularity${query({ limit: 4 })}`), showPopularity),
  ]);
}

// show draws an answer as a plot, or shows the error.
async function show(place, load, draw) {
  const at = $(`plot-${place}`);
  try {
    const answer = await load();
    renderIfChanged(at, place === 'shares' ? [answer.shares, answer.unavailable] : answer, () => draw(answer));
  } catch (error) {
    renderIfChanged(at, error.message, () => h('p', { class: 'notice' }, `Cannot draw the plot ${place}: ${error.message}.`));
  }
}

const showGrowth = (g) => [
  lines('Users, day by day', g.days, trends, 'the last 28 days'),
  lines('Active users', g.days, [['active', 'active', 'curve-1']], 'users who acted on the day or in the 27 days before it'),
];

// showShares compares the items of chunks with the target shares, for each feed with items.
function showShares(status) {
  const unavailable = (status.unavailable || []).map((u) => h('p', { class: 'notice' }, `Missing: ${u.source}: ${u.reason}.`));
  return [unavailable, sharesOf(status, unavailable.length > 0)].flat();
}

// sharesOf returns the plots. partly: some processes did not answer.
function sharesOf(status, partly) {
  if (!status.shares) return h('p', { class: 'notice' }, 'No process with a generator answered. The view Pools has the shares of one user.');
  const feeds = [...new Set(status.shares.map((s) => [s.feed, s.arm].filter(Boolean).join(', arm ')))];
  const figures = feeds.map((feed) => shareOf(feed, status.shares.filter((s) => [s.feed, s.arm].filter(Boolean).join(', arm ') === feed))).filter(Boolean);
  const none = partly ? 'No visits on the processes that answered' : 'No visits yet';
  return figures.length ? figures : h('p', { class: 'notice' }, `${none}: no shares to compare.`);
}

function shareOf(feed, list) {
  const all = list.reduce((n, s) => n + s.items, 0);
  if (!all) return null;
  const used = list.filter((s) => s.source !== 'others' || s.items);
  const targets = used.reduce((n, s) => n + s.target, 0);
  const known = targets && !used.some((s) => s.source === 'others'); // each of the other sources has this target, and their number is unknown
  const rows = used.map((s) => ({ name: s.source, target: known ? s.target / targets : null, actual: s.items / all }));
  const note = `of ${all.toLocaleString('en')} items chosen since the generators started`;
  return shares(`Shares of feed ${feed}`, rows, known ? note : `${note}; the view Pools has the targets of one user`);
}

async function loadFunnel() {
  const { parameters, words } = funnel; // the form may change before the answer arrives
  return { ...await call(`/v1/insights/funnel${query(parameters)}`), words };
}

// readFunnel reads the form. Later refreshes use its values.
function readFunnel() {
  const steps = $('funnel-steps').value.split(/[\s,]+/).filter(Boolean).join(',');
  funnel = { parameters: { steps, within: $('funnel-within').value }, words: $('funnel-within').selectedOptions[0].textContent };
}

function showPopularity(answer) {
  if (!answer.interests.length) return h('p', { class: 'notice' }, 'No actions yet.');
  return answer.interests.map((i) => hours(`Actions on ${name(i.interest)} by hour`, i.hours, `${i.actions.toLocaleString('en')} actions on its pins, by weekday and hour (UTC)`));
}

// start creates the elements of the plots, and connects the form.
export function start() {
  $('plots').replaceChildren(...places.map((p) => h('div', { id: `plot-${p}` })));
  readFunnel();
  $('funnel-form').addEventListener('submit', (event) => {
    event.preventDefault();
    readFunnel();
    setText($('notice'), '');
    last = 0;
    refresh();
  });
}

// open makes the next refresh reload the data.
export function open() {
  last = 0;
}
