// Features of a user, live, and a form to try a definition before it is one.

import { $, bar, change, h, keyed, put, s, setBar, table } from './dom.js';
import { call, post } from './api.js';
import { clock, name, short } from './format.js';
import { app, current } from './app.js';

const example = `name: saves_6h_by_interest
entity: user
verbs: [save]
window: 6h
group_by: objectAttributes.interests
aggregate: count
`;

const groupsShown = 6, entriesShown = 5; // of a value's parts

// ask returns the definitions of features of users, each with the user's value, and as of when.
export async function ask() {
  const { features } = await call('/v1/features'); // it may have changed: the file is read again by itself
  const definitions = features.filter((d) => d.entity === 'user');
  if (!definitions.length) return { definitions, values: {}, asOf: null };
  const answer = await post('/v1/features', { features: definitions.map((d) => d.name).slice(0, 100), users: [app.user] });
  return { definitions, values: answer.values[app.user] || {}, asOf: answer.as_of };
}

// look asks again, and shows what changed.
export async function look() {
  const matters = current();
  const found = await ask();
  if (!matters()) return;
  $('features-as-of').textContent = found.asOf ? ` at ${clock(found.asOf)}` : '';
  show($('features'), found, found.definitions.length, 'h2');
}

// show has a place show the first most features, those with a value before those without, under headings of a level.
export function show(place, found, most, heading) {
  const empty = (d) => Number(isEmpty(found.values[d.name]));
  const list = most < found.definitions.length ? [...found.definitions].sort((a, b) => empty(a) - empty(b)).slice(0, most) : found.definitions;
  keyed(place, list, (d) => d.name, (d) => make(d, heading), (e, d) => update(e.querySelector('.is'), found.values[d.name]));
}

function make(d, heading) {
  return h('section', { class: 'feature', title: d.description || false },
    h(heading, null, d.name, d.window && h('span', { class: 'quiet' }, d.window)), h('div', { class: 'is' }));
}

const isEmpty = (v) => v === null || v === undefined || (typeof v === 'object' && !Object.keys(v).length);

// update shows a value: a number, counts by group, a list of actions or of values, or a vector.
function update(place, value) {
  const lines = linesOf(value);
  if (lines === null && Array.isArray(value) && value.length) return put(place, value, vector);
  if (lines === null) return single(place, isEmpty(value) ? 'nothing yet' : spelled(value), isEmpty(value));
  let list = place.firstElementChild;
  if (!list || list.tagName !== 'UL') {
    list = h('ul', { class: 'bars' });
    place.replaceChildren(list);
  }
  keyed(list, lines, (l) => l.key, (l) => bar(l.label, l.key), (line, l) => setBar(line, l.value, l.part));
}

function single(place, text, quiet) {
  let p = place.firstElementChild;
  if (!p || p.tagName !== 'P') {
    p = h('p', { class: 'single' });
    place.replaceChildren(p);
  }
  p.classList.toggle('none', quiet);
  change(p, text);
}

function spelled(value) {
  if (typeof value === 'number') return short(value);
  return `[${value.slice(0, 3).map((x) => x.toFixed(3)).join(', ')} …], ${value.length} numbers`;
}

// vector draws numbers as bars above and below a line.
function vector(list) {
  const most = Math.max(...list.map(Math.abs), 1e-9), wide = 100 / list.length;
  return s('svg', { class: 'vector', viewBox: '0 0 100 40', preserveAspectRatio: 'none', role: 'img', 'aria-label': spelled(list) },
    list.map((v, i) => {
      const tall = (Math.abs(v) / most) * 20;
      return s('rect', { x: i * wide + wide * 0.1, width: wide * 0.8, y: v > 0 ? 20 - tall : 20, height: Math.max(tall, 0.5) });
    }));
}

// linesOf takes a value apart into lines; null: it is a single thing.
function linesOf(value) {
  if (isEmpty(value) || typeof value === 'number') return null;
  if (!Array.isArray(value)) return groups(value);
  if (typeof value[0] === 'number') return null;
  return value.slice(0, entriesShown).map((x, i) => (x.verb
    ? { key: `${x.timestamp} ${x.object} ${i}`, label: `${x.verb} ${name(x.object)}`, value: clock(x.timestamp), part: 0 }
    : { key: x.value, label: name(x.value), value: short(x.count), part: x.count / value[0].count }));
}

function groups(value) {
  const list = Object.entries(value).sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1)).slice(0, groupsShown);
  const most = Math.max(...list.map(([, n]) => n), 0);
  return list.map(([key, n]) => ({ key, label: name(key), value: short(n), part: most > 0 ? n / most : 0 }));
}

// tryIt evaluates the definition of the form.
async function tryIt(event) {
  event.preventDefault();
  const users = $('try-users').value.split('\n').map((u) => u.trim()).filter(Boolean);
  $('try-problems').replaceChildren();
  $('try-answer').replaceChildren();
  try {
    showAnswer(await post('/v1/features/try', { definition: $('try-definition').value, users }), users);
  } catch (error) {
    showProblems(error);
  }
}

function showProblems(error) {
  const absent = error.status === 404 || error.status === 405;
  const problems = absent ? ['This server cannot try definitions.'] : error.errors.length ? error.errors : [error.message];
  $('try-definition').setAttribute('aria-invalid', String(!absent));
  put($('try-problems'), { problems, at: Date.now() }, () => h('ul', { class: 'problems' }, problems.map((p) => h('li', null, p))));
}

function showAnswer(answer, users) {
  $('try-definition').removeAttribute('aria-invalid');
  const rows = users.map((user) => [user, ...answer.definitions.map((d) => inFull((answer.values[user] || {})[d.name]))]);
  const missing = answer.missing.map((m) => h('li', null, `${m.feature} of ${m.entity}: ${m.reason}`));
  $('try-answer').replaceChildren(...[
    table('What the definition answers', ['user', ...answer.definitions.map((d) => d.name)], rows),
    missing.length > 0 && h('ul', { class: 'quiet' }, missing),
    answer.degraded.length > 0 && h('p', { class: 'notice' }, `Answered without: ${answer.degraded.join(', ')}.`),
    h('p', { class: 'quiet' }, `as of ${clock(answer.as_of)}`)].filter(Boolean));
}

function inFull(value) {
  const lines = linesOf(value);
  if (lines === null) return isEmpty(value) ? 'nothing' : spelled(value);
  return h('ul', { class: 'plain' }, lines.map((l) => h('li', null, `${l.label} ${l.value}`)));
}

// leave takes what belongs to the user before off the page.
export function leave() {
  $('features').replaceChildren();
  $('features-as-of').textContent = '';
  $('try-users').value = app.user;
  $('try-problems').replaceChildren();
  $('try-answer').replaceChildren();
}

// start has the form work.
export function start() {
  $('try-definition').value = example;
  $('try').addEventListener('submit', tryIt);
}
