// Features of a user, live, and a form to try a definition before it is one.

import { $, bar, change, h, keyed, put, s, setBar, table, tell } from './dom.js';
import { call, post } from './api.js';
import { clock, name, short, unread, without } from './format.js';
import { app, current } from './app.js';

const example = `name: saves_6h_by_interest
entity: user
verbs: [save]
window: 6h
group_by: objectAttributes.interests
aggregate: count
`;

const groupsShown = 6, entriesShown = 5; // of a value's parts
const atOnce = 100; // features that one call answers

// Why a feature or a part of it is missing, in words. What is empty is not missing: nothing was done that it could be of.
const lacks = {
  window: 'of the kept part of its window alone',
  cap: 'of the newest actions alone',
  overflow: 'what is too great for a number is left out',
  deleted: 'the user is deleted',
  deadline: 'it was not evaluated in time',
  store: 'the store could not be read',
};

// ask returns the definitions of features of users; by name the user's values, and the reasons why one or a part of it is
// missing; what the answers did without; and as of when, the oldest of them.
export async function ask() {
  const { features } = await call('/v1/features'); // it may have changed: the file is read again by itself
  const definitions = features.filter((d) => d.entity === 'user'), user = app.user;
  const names = definitions.map((d) => d.name), slices = [];
  while (names.length) slices.push(names.splice(0, atOnce));
  const answers = await Promise.all(slices.map((slice) => post('/v1/features', { features: slice, users: [user] })));
  return {
    definitions,
    values: Object.assign({}, ...answers.map((a) => a.values[user])),
    reasons: reasonsOf(answers.flatMap((a) => a.missing), user),
    degraded: [...new Set(answers.flatMap((a) => a.degraded))],
    asOf: answers.map((a) => a.as_of).sort((a, b) => Date.parse(a) - Date.parse(b))[0],
  };
}

// reasonsOf are the reasons why features of an entity, or parts of them, are missing, by name.
function reasonsOf(missing, entity) {
  const by = new Map();
  for (const m of missing.filter((x) => x.entity === entity)) by.set(m.feature, [...(by.get(m.feature) || []), m.reason]);
  return by;
}

// look asks again, and shows what changed.
export async function look() {
  const matters = current();
  try {
    const found = await ask();
    if (!matters()) return;
    tell($('features-degraded'), without(found.degraded));
    $('features-as-of').textContent = found.asOf ? ` at ${clock(found.asOf)}` : '';
    show($('features'), found, found.definitions.length, 'h2');
  } catch (error) {
    if (matters()) tell($('features-degraded'), unread('Features', error));
    throw error;
  }
}

// show has a place show the first most features, those with a value before those without, under headings of a level.
export function show(place, found, most, heading) {
  const empty = (d) => Number(isEmpty(found.values[d.name]));
  const list = most < found.definitions.length ? [...found.definitions].sort((a, b) => empty(a) - empty(b)).slice(0, most) : found.definitions;
  keyed(place, list, (d) => d.name, (d) => make(d, heading), (e, d) => {
    const value = found.values[d.name], reasons = found.reasons.get(d.name) || [];
    update(e.querySelector('.is'), value, reasons);
    tell(e.querySelector('.lack'), reasons.filter((r) => r !== 'empty').map((r) => lacks[r] || r).join(', '));
  });
}

function make(d, heading) {
  return h('section', { class: 'feature', title: d.description || false },
    h(heading, null, d.name, d.window && h('span', { class: 'quiet' }, d.window)),
    h('div', { class: 'is' }), h('p', { class: 'lack quiet', hidden: true }));
}

const isEmpty = (v) => v === null || v === undefined || (typeof v === 'object' && !Object.keys(v).length);

// unknown says that nobody could say what the value is, which is not that there is none.
const unknown = (value, reasons) => value === undefined || (value === null && reasons.some((r) => r !== 'empty'));

// update shows a value: a number, counts by group, a list of actions or of values, or a vector.
function update(place, value, reasons) {
  const lines = linesOf(value);
  if (lines === null && Array.isArray(value) && value.length) return put(place, value, vector);
  if (lines === null) return single(place, inWords(value, reasons, 'nothing yet'), isEmpty(value));
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

// inWords writes a single value; nothing is what is said of one that is known and empty.
function inWords(value, reasons, nothing) {
  if (unknown(value, reasons)) return 'not known';
  return isEmpty(value) ? nothing : spelled(value);
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
  const rows = users.map((user) => {
    const values = answer.values[user] || {}, reasons = reasonsOf(answer.missing, user);
    return [user, ...answer.definitions.map((d) => inFull(values[d.name], reasons.get(d.name) || []))];
  });
  const missing = answer.missing.map((m) => h('li', null, `${m.feature} of ${m.entity}: ${m.reason}`));
  $('try-answer').replaceChildren(...[
    table('What the definition answers', ['user', ...answer.definitions.map((d) => d.name)], rows),
    missing.length > 0 && h('ul', { class: 'quiet' }, missing),
    answer.degraded.length > 0 && h('p', { class: 'notice' }, without(answer.degraded)),
    h('p', { class: 'quiet' }, `as of ${clock(answer.as_of)}`)].filter(Boolean));
}

function inFull(value, reasons) {
  const lines = linesOf(value);
  if (lines === null) return inWords(value, reasons, 'nothing');
  return h('ul', { class: 'plain' }, lines.map((l) => h('li', null, `${l.label} ${l.value}`)));
}

// leave takes what belongs to the user before off the page.
export function leave() {
  $('features').replaceChildren();
  $('features-as-of').textContent = '';
  tell($('features-degraded'), '');
  $('try-users').value = app.user;
  $('try-problems').replaceChildren();
  $('try-answer').replaceChildren();
}

// start has the form work.
export function start() {
  $('try-definition').value = example;
  $('try').addEventListener('submit', tryIt);
}
