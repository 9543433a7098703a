// How the product is used: shares, funnels, trends, cohorts.

import { $, h, put, tell } from './dom.js';
import { call, query } from './api.js';
import { cohorts, columns, hours, lines, shares, steps } from './plots.js';
import { name } from './format.js';

const trends = [['daily', 'daily', 'curve-1'], ['new', 'new', 'curve-2'], ['resurrected', 'resurrected', 'curve-3'], ['became dormant', 'dormant', 'curve-4']];
const places = ['shares', 'funnel', 'growth', 'habit', 'cohorts', 'popularity']; // of the plots, in their order
const pause = 10000; // ms between two looks: each is a scan of the insights
let last = 0;
let funnel = {}; // what is asked for, and in words

// look asks for the numbers when they may have changed. What cannot be asked says so in its place.
export async function look() {
  if (Date.now() - last < pause) return;
  last = Date.now();
  await Promise.all([
    show('shares', () => call('/v1/status'), showShares),
    show('funnel', askFunnel, (f) => steps('Funnel', f.steps, `users who did one step after the other, all within ${f.words}, in the last seven days`)),
    show('growth', () => call('/v1/insights/growth'), showGrowth),
    show('habit', () => call('/v1/insights/xd28s'), (x) => columns('Days of activity', x.xd28s.map((d) => ({ name: String(d.days), value: d.users })), 'users by how many of the last 28 days they acted on: the further right, the more of a habit')),
    show('cohorts', () => call('/v1/insights/retention'), (r) => cohorts('Cohorts', r.cohorts, 'of those who acted for the first time in a week, how many acted in each later one')),
    show('popularity', () => call(`/v1/insights/popularity${query({ limit: 4 })}`), showPopularity),
  ]);
}

// show has a place of the plots show what is answered.
async function show(place, ask, draw) {
  const at = $(`plot-${place}`);
  try {
    const answer = await ask();
    put(at, place === 'shares' ? [answer.shares, answer.unavailable] : answer, () => draw(answer));
  } catch (error) {
    put(at, error.message, () => h('p', { class: 'notice' }, `The plot ${place} is not there: ${error.message}.`));
  }
}

const showGrowth = (g) => [
  lines('Users, day by day', g.days, trends, 'the last 28 days'),
  lines('Active users', g.days, [['active', 'active', 'curve-1']], 'acted on the day or one of the 27 before it'),
];

// showShares compares what chunks were made of with their targets, for each feed that gave something.
function showShares(status) {
  const unavailable = (status.unavailable || []).map((u) => h('p', { class: 'notice' }, `Without ${u.source}: ${u.reason}.`));
  return [unavailable, sharesOf(status, unavailable.length > 0)].flat();
}

// sharesOf are the plots; partly: of those who choose some could not be asked.
function sharesOf(status, partly) {
  if (!status.shares) return h('p', { class: 'notice' }, 'What is shown is chosen by other processes, none of which could be asked. Under Pools is how it stands with one user.');
  const feeds = [...new Set(status.shares.map((s) => [s.feed, s.arm].filter(Boolean).join(', arm ')))];
  const figures = feeds.map((feed) => shareOf(feed, status.shares.filter((s) => [s.feed, s.arm].filter(Boolean).join(', arm ') === feed))).filter(Boolean);
  const none = partly ? 'No feed has been asked for where it could be asked' : 'No feed has been asked for yet';
  return figures.length ? figures : h('p', { class: 'notice' }, `${none}: there is nothing to compare with the shares.`);
}

function shareOf(feed, list) {
  const all = list.reduce((n, s) => n + s.items, 0);
  if (!all) return null;
  const used = list.filter((s) => s.source !== 'others' || s.items);
  const targets = used.reduce((n, s) => n + s.target, 0);
  const known = targets && !used.some((s) => s.source === 'others'); // of those each has the target, and nobody says how many they are
  const rows = used.map((s) => ({ name: s.source, target: known ? s.target / targets : null, actual: s.items / all }));
  const note = `of ${all.toLocaleString('en')} items chosen since the processes began that choose`;
  return shares(`Shares of feed ${feed}`, rows, known ? note : `${note}; what the targets are for a user is under Pools`);
}

async function askFunnel() {
  const { asked, words } = funnel; // the form may change while the answer is on its way
  return { ...await call(`/v1/insights/funnel${query(asked)}`), words };
}

// readFunnel takes what the form says: it is asked for from now on.
function readFunnel() {
  const steps = $('funnel-steps').value.split(/[\s,]+/).filter(Boolean).join(',');
  funnel = { asked: { steps, within: $('funnel-within').value }, words: $('funnel-within').selectedOptions[0].textContent };
}

function showPopularity(answer) {
  if (!answer.interests.length) return h('p', { class: 'notice' }, 'Nothing has been acted on yet.');
  return answer.interests.map((i) => hours(`When ${name(i.interest)} is liked`, i.hours, `${i.actions.toLocaleString('en')} actions on its pins, by hour of UTC`));
}

// start makes the places of the plots, and has the form work.
export function start() {
  $('plots').replaceChildren(...places.map((p) => h('div', { id: `plot-${p}` })));
  readFunnel();
  $('funnel-form').addEventListener('submit', (event) => {
    event.preventDefault();
    readFunnel();
    tell($('notice'), '');
    last = 0;
    look();
  });
}

// open has the next look ask, however lately the last one was.
export function open() {
  last = 0;
}
