// Features of a user, of a pin and of the two together, live, and a form to try a definition before it is one.

import { $, bar, change, h, keyed, put, s, setBar, table, tell } from './dom.js';
import { call, post } from './api.js';
import { clock, count, name, short, unread, without } from './format.js';
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

// The kinds of entity that features are of: where a question names such entities, and what several are called.
const kinds = {
  user: { field: 'users', many: 'users' },
  pin: { field: 'pins', many: 'pins' },
  pair: { field: 'pairs', many: 'pairs of a user and a pin' },
};

let pin = ''; // of which features are shown, with the user and alone; '': of none

// Why a feature or a part of it is missing, in words. What is empty is not missing: nothing was done that it could be of.
const lacks = {
  empty: 'there is nothing that it could be of',
  window: 'of the kept part of its window alone',
  cap: 'of the newest actions alone',
  overflow: 'what is too great for a number is left out',
  pin: 'nothing is known of the pin, or it is deleted',
  attribute: 'the pin has nothing that the user could have a value for',
  deleted: 'the user is deleted',
  deadline: 'it was not evaluated in time',
  store: 'the store could not be read',
};

const inOneWord = (pair) => pair.join('|'); // as answers call it

// defined returns the definitions. They may have changed: the file is read again by itself.
const defined = async () => (await call('/v1/features')).features;

// ask asks for the features of a user, and askOfPin for those of a pin and of the user with it.
export const ask = async () => evaluate(await defined(), { user: app.user });
const askOfPin = (definitions) => evaluate(definitions, { pin, pair: [app.user, pin] });

// evaluate returns those definitions that are of a kind of the entities, one of each kind; by name the values, and the
// reasons why one or a part of it is missing; what the answers did without; and as of when, the oldest of them.
async function evaluate(all, entities) {
  const definitions = all.filter((d) => d.entity in entities), named = {};
  for (const [kind, entity] of Object.entries(entities)) named[kinds[kind].field] = [entity];
  const names = definitions.map((d) => d.name), slices = [];
  while (names.length) slices.push(names.splice(0, atOnce));
  const answers = await Promise.all(slices.map((slice) => post('/v1/features', { features: slice, ...named })));
  const ids = Object.values(entities).map((e) => (Array.isArray(e) ? inOneWord(e) : e));
  return {
    definitions,
    values: Object.assign({}, ...answers.flatMap((a) => ids.map((id) => a.values[id]))),
    reasons: reasonsOf(answers.flatMap((a) => a.missing), ids),
    degraded: [...new Set(answers.flatMap((a) => a.degraded))],
    asOf: answers.map((a) => a.as_of).sort((a, b) => Date.parse(a) - Date.parse(b))[0],
  };
}

// reasonsOf are the reasons why features of entities, or parts of them, are missing, by name.
function reasonsOf(missing, entities) {
  const by = new Map();
  for (const m of missing.filter((x) => entities.includes(x.entity))) by.set(m.feature, [...(by.get(m.feature) || []), m.reason]);
  return by;
}

// look asks again, and shows what changed.
export async function look() {
  const matters = current();
  try {
    const definitions = await defined();
    const [found] = await Promise.all([evaluate(definitions, { user: app.user }), lookAtPin(definitions)]);
    if (!matters()) return;
    tell($('features-degraded'), without(found.degraded));
    $('features-as-of').textContent = found.asOf ? ` at ${clock(found.asOf)}` : '';
    show($('features'), found, found.definitions.length, 'h2');
  } catch (error) {
    if (matters()) tell($('features-degraded'), unread('Features', error));
    throw error;
  }
}

// lookAtPin shows what is known of the pin, and says what could be shown if there is none.
async function lookAtPin(definitions) {
  const unseen = current(), asked = pin;
  const matters = () => unseen() && pin === asked;
  if (!pin) {
    const others = definitions.filter((d) => d.entity !== 'user').length;
    tell($('of-pin-said'), others ? `${count(others, 'feature is', 'features are')} of pins, or of a user and a pin: name a pin to see what they are.` : 'No feature is of pins.');
    return;
  }
  try {
    const found = await askOfPin(definitions);
    if (!matters()) return;
    tell($('of-pin-said'), found.definitions.length ? without(found.degraded) : 'No feature is of pins.');
    show($('of-pin'), found, found.definitions.length, 'h3');
  } catch (error) {
    if (matters()) tell($('of-pin-said'), unread(`Features of ${asked}`, error));
  }
}

// choosePin has the view show another pin.
function choosePin(event) {
  event.preventDefault();
  const typed = $('pin').value.trim();
  pin = !typed || typed.includes(':') ? typed : `pin:${typed}`;
  $('pin').value = pin;
  $('of-pin').replaceChildren();
  tell($('of-pin-said'), '');
  look().catch(() => {}); // the next look tells
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

const of = { pin: 'of the pin', pair: 'of the user and the pin' }; // what else than of the user a feature is

function make(d, heading) {
  return h('section', { class: 'feature' },
    h(heading, null, d.name, h('span', { class: 'quiet' }, [of[d.entity], d.window].filter(Boolean).join(', '))),
    d.description && h('p', { class: 'meant quiet' }, d.description), h('div', { class: 'is' }), h('p', { class: 'lack quiet', hidden: true }));
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

const tried = [['user', 'try-users'], ['pin', 'try-pins'], ['pair', 'try-pairs']]; // kinds, and the fields with entities of each

const linesIn = (field) => [...new Set($(field).value.split('\n').map((l) => l.trim()).filter(Boolean))];

// pairIn is what a line has of a pair, [user, pin]: it may have been taken from an answer.
const pairIn = (line) => line.split(/\s+|\|(?=pin:)/);

// tryIt evaluates the definition of the form.
async function tryIt(event) {
  event.preventDefault();
  const entities = { user: linesIn('try-users'), pin: linesIn('try-pins'), pair: linesIn('try-pairs').map(pairIn) };
  $('try-problems').replaceChildren();
  $('try-answer').replaceChildren();
  for (const field of ['try-definition', ...tried.map(([, f]) => f)]) $(field).removeAttribute('aria-invalid');
  try {
    const named = Object.fromEntries(Object.entries(entities).filter(([, list]) => list.length).map(([kind, list]) => [kinds[kind].field, list]));
    showAnswer(await post('/v1/features/try', { definition: $('try-definition').value, ...named }), entities);
  } catch (error) {
    showProblems(error);
  }
}

function showProblems(error) {
  const absent = error.status === 404 || error.status === 405;
  const problems = absent ? ['This server cannot try definitions.'] : error.errors.length ? error.errors : [error.message];
  const about = (p) => tried.find(([kind]) => p.startsWith(`${kinds[kind].field}: `));
  if (error.status === 400) for (const p of problems) $((about(p) || ['', 'try-definition'])[1]).setAttribute('aria-invalid', 'true');
  put($('try-problems'), { problems, at: Date.now() }, () => h('ul', { class: 'problems' }, problems.map((p) => h('li', null, p))));
}

function showAnswer(answer, entities) {
  const missing = answer.missing.map((m) => h('li', null, `${m.feature} of ${m.entity}: ${lacks[m.reason] || m.reason}`));
  $('try-answer').replaceChildren(...[
    ...Object.keys(kinds).map((kind) => answerOf(kind, answer, entities[kind])),
    missing.length > 0 && h('ul', { class: 'quiet' }, missing),
    answer.degraded.length > 0 && h('p', { class: 'notice' }, without(answer.degraded)),
    h('p', { class: 'quiet' }, `as of ${clock(answer.as_of)}`)].filter(Boolean));
}

// answerOf is what the definitions of a kind of entity answer, or why they cannot: a value is of an entity of its kind alone.
function answerOf(kind, answer, entities) {
  const definitions = answer.definitions.filter((d) => d.entity === kind), { many } = kinds[kind];
  if (!definitions.length) return null;
  if (!entities.length) return h('p', { class: 'notice' }, `${definitions.map((d) => d.name).join(', ')}: features of ${many}, and none are named.`);
  const rows = entities.map((e) => (Array.isArray(e) ? inOneWord(e) : e)).map((id) => {
    const values = answer.values[id] || {}, reasons = reasonsOf(answer.missing, [id]);
    return [id, ...definitions.map((d) => inFull(values[d.name], reasons.get(d.name) || []))];
  });
  return h('div', { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': `Answers of ${many}` },
    table(`What the definition answers of ${many}`, [kind, ...definitions.map((d) => d.name)], rows));
}

function inFull(value, reasons) {
  const lines = linesOf(value);
  if (lines === null) return inWords(value, reasons, 'nothing');
  return h('ul', { class: 'plain' }, lines.map((l) => h('li', null, `${l.label} ${l.value}`)));
}

// leave takes what belongs to the user before off the page.
export function leave() {
  for (const id of ['features', 'of-pin']) $(id).replaceChildren();
  $('features-as-of').textContent = '';
  for (const id of ['features-degraded', 'of-pin-said']) tell($(id), '');
  $('try-users').value = app.user;
  $('try-problems').replaceChildren();
  $('try-answer').replaceChildren();
}

// start has the forms work. Pins are suggested that stand in the feed.
export function start() {
  $('pin').addEventListener('focus', () => {
    $('pins').replaceChildren(...[...document.querySelectorAll('.card')].map((c) => h('option', { value: c.dataset.pin })));
  });
  $('pin-form').addEventListener('submit', choosePin);
  $('try-definition').value = example;
  $('try').addEventListener('submit', tryIt);
}
