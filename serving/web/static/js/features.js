// Live features of a user, a pin and the pair of both, and a form to try definitions.

import { $, bar, updateText, h, updateList, renderIfChanged, s, setBar, table, setText } from './dom.js';
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

const groupsShown = 6, entriesShown = 5; // per value
const maxFeatures = 100; // per request

// The kinds of entities: the field of a request, and the plural.
const kinds = {
  user: { field: 'users', many: 'users' },
  pin: { field: 'pins', many: 'pins' },
  pair: { field: 'pairs', many: 'pairs of a user and a pin' },
};

let pin = ''; // the pin whose features, and those of its pair with the user, are shown; '': none

// The reasons why a feature or a part of it is missing, as text.
const missingTexts = {
  empty: 'no matching actions',
  window: 'covers only the kept part of the window',
  cap: 'covers only the newest actions',
  overflow: 'values above the range of a number are omitted',
  pin: 'the pin is unknown or deleted',
  attribute: 'the pin lacks the attribute',
  deleted: 'the user is deleted',
  deadline: 'not evaluated in time',
  store: 'the store could not be read',
  size: 'the answer would be too large',
};

const pairName = (pair) => pair.join('|'); // the key of a pair in answers

// defined returns the current definitions. The server reloads their file when it changes.
const defined = async () => (await call('/v1/features')).features;

// evaluateUser evaluates the features of the user, and evaluatePin those of the pin and of their pair.
export const evaluateUser = async () => evaluate(await defined(), { user: app.user });
const evaluatePin = (definitions) => evaluate(definitions, { pin, pair: [app.user, pin] });

// evaluate evaluates the definitions of the kinds of entities, one entity per kind. It returns these definitions, the values and
// the reasons for missing ones by name, the degraded parts, and the oldest as_of of the answers.
async function evaluate(all, entities) {
  const definitions = all.filter((d) => d.entity in entities), named = {};
  for (const [kind, entity] of Object.entries(entities)) named[kinds[kind].field] = [entity];
  const names = definitions.map((d) => d.name), slices = [];
  while (names.length) slices.push(names.splice(0, maxFeatures));
  const answers = await Promise.all(slices.map((slice) => post('/v1/features', { features: slice, ...named })));
  const ids = Object.values(entities).map((e) => (Array.isArray(e) ? pairName(e) : e));
  return {
    definitions,
    values: Object.assign({}, ...answers.flatMap((a) => ids.map((id) => a.values[id]))),
    reasons: reasonsOf(answers.flatMap((a) => a.missing), ids),
    degraded: [...new Set(answers.flatMap((a) => a.degraded))],
    asOf: answers.map((a) => a.as_of).sort((a, b) => Date.parse(a) - Date.parse(b))[0],
  };
}

// reasonsOf returns by feature the reasons why values of the entities, or parts of them, are missing.
function reasonsOf(missing, entities) {
  const by = new Map();
  for (const m of missing.filter((x) => entities.includes(x.entity))) by.set(m.feature, [...(by.get(m.feature) || []), m.reason]);
  return by;
}

// refresh evaluates the features and updates the view.
export async function refresh() {
  const isCurrent = current();
  try {
    const definitions = await defined();
    const [found] = await Promise.all([evaluate(definitions, { user: app.user }), refreshPin(definitions)]);
    if (!isCurrent()) return;
    setText($('features-degraded'), without(found.degraded));
    $('features-as-of').textContent = found.asOf ? ` at ${clock(found.asOf)}` : '';
    show($('features'), found, found.definitions.length, 'h2');
  } catch (error) {
    if (isCurrent()) setText($('features-degraded'), unread('the features', error));
    throw error;
  }
}

// refreshPin shows the features of the pin, or how to choose a pin.
async function refreshPin(definitions) {
  const sameUser = current(), requested = pin;
  const isCurrent = () => sameUser() && pin === requested;
  if (!pin) {
    const others = definitions.filter((d) => d.entity !== 'user').length;
    setText($('of-pin-status'), others ? `${count(others, 'feature', 'features')} of pins or pairs. Choose a pin to see ${others === 1 ? 'its value' : 'their values'}.` : 'No features of pins are defined.');
    return;
  }
  try {
    const found = await evaluatePin(definitions);
    if (!isCurrent()) return;
    setText($('of-pin-status'), found.definitions.length ? without(found.degraded) : 'No features of pins are defined.');
    show($('of-pin'), found, found.definitions.length, 'h3');
  } catch (error) {
    if (isCurrent()) setText($('of-pin-status'), unread(`the features of ${requested}`, error));
  }
}

// choosePin shows the features of another pin.
function choosePin(event) {
  event.preventDefault();
  const typed = $('pin').value.trim();
  pin = !typed || typed.includes(':') ? typed : `pin:${typed}`;
  $('pin').value = pin;
  $('of-pin').replaceChildren();
  setText($('of-pin-status'), '');
  refresh().catch(() => {}); // the next refresh shows the error
}

// show displays at most most features, those with a value first. heading is the tag of their headings.
export function show(place, found, most, heading) {
  const empty = (d) => Number(isEmpty(found.values[d.name]));
  const list = most < found.definitions.length ? [...found.definitions].sort((a, b) => empty(a) - empty(b)).slice(0, most) : found.definitions;
  updateList(place, list, (d) => d.name, (d) => make(d, heading), (e, d) => {
    const value = found.values[d.name], reasons = found.reasons.get(d.name) || [];
    update(e.querySelector('.is'), value, reasons);
    setText(e.querySelector('.incomplete'), reasons.filter((r) => r !== 'empty').map((r) => missingTexts[r] || r).join(', '));
  });
}

const of = { pin: 'of the pin', pair: 'of the user and the pin' };

function make(d, heading) {
  return h('section', { class: 'feature' },
    h(heading, null, d.name, h('span', { class: 'quiet' }, [of[d.entity], d.window].filter(Boolean).join(', '))),
    d.description && h('p', { class: 'meant quiet' }, d.description), h('div', { class: 'is' }), h('p', { class: 'incomplete quiet', hidden: true }));
}

const isEmpty = (v) => v === null || v === undefined || (typeof v === 'object' && !Object.keys(v).length) || (Array.isArray(v.time) && !v.time.length);

// unknown reports whether the value could not be evaluated, in contrast to an empty value.
const unknown = (value, reasons) => value === undefined || (value === null && reasons.some((r) => r !== 'empty'));

// update shows a value: a number, counts by group, a list of actions or of values, a sequence, or a vector.
function update(place, value, reasons) {
  const lines = linesOf(value);
  if (lines === null && Array.isArray(value) && value.length) return renderIfChanged(place, value, vector);
  if (lines === null) return single(place, inWords(value, reasons, 'nothing yet'), isEmpty(value));
  let list = place.firstElementChild;
  if (!list || list.tagName !== 'UL') {
    list = h('ul', { class: 'bars' });
    place.replaceChildren(list);
  }
  updateList(list, lines, (l) => l.key, (l) => bar(l.label, l.key), (line, l) => setBar(line, l.value, l.part));
}

function single(place, text, quiet) {
  let p = place.firstElementChild;
  if (!p || p.tagName !== 'P') {
    p = h('p', { class: 'single' });
    place.replaceChildren(p);
  }
  p.classList.toggle('none', quiet);
  updateText(p, text);
}

// inWords returns the text of a single value. nothing is the text of an empty value.
function inWords(value, reasons, nothing) {
  if (unknown(value, reasons)) return 'unknown';
  return isEmpty(value) ? nothing : spelled(value);
}

function spelled(value) {
  if (typeof value === 'number') return short(value);
  return `[${value.slice(0, 3).map((x) => x.toFixed(3)).join(', ')} …], ${value.length} numbers`;
}

// vector draws numbers as bars above and below the zero line.
function vector(list) {
  const most = Math.max(...list.map(Math.abs), 1e-9), wide = 100 / list.length;
  return s('svg', { class: 'vector', viewBox: '0 0 100 40', preserveAspectRatio: 'none', role: 'img', 'aria-label': spelled(list) },
    list.map((v, i) => {
      const tall = (Math.abs(v) / most) * 20;
      return s('rect', { x: i * wide + wide * 0.1, width: wide * 0.8, y: v > 0 ? 20 - tall : 20, height: Math.max(tall, 0.5) });
    }));
}

// linesOf splits a value into lines; null: it is a single value.
function linesOf(value) {
  if (isEmpty(value) || typeof value === 'number') return null;
  if (Array.isArray(value.time)) return sequence(value);
  if (!Array.isArray(value)) return groups(value);
  if (typeof value[0] === 'number') return null;
  return value.slice(0, entriesShown).map((x, i) => (x.verb
    ? { key: `${x.timestamp} ${x.object} ${i}`, label: `${x.verb} ${name(x.object)}`, value: clock(x.timestamp), part: 0 }
    : { key: x.value, label: name(x.value), value: short(x.count), part: x.count / value[0].count }));
}

// sequence returns a line per action, with the texts of its columns.
function sequence(value) {
  const texts = Object.values(value).filter((column) => typeof column[0] === 'string');
  return value.time.slice(0, entriesShown).map((at, i) => ({
    key: `${at} ${i}`, label: texts.map((column) => name(column[i])).filter(Boolean).join(' '), value: clock(new Date(at).toISOString()), part: 0,
  }));
}

function groups(value) {
  const list = Object.entries(value).sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1)).slice(0, groupsShown);
  const most = Math.max(...list.map(([, n]) => n), 0);
  return list.map(([key, n]) => ({ key, label: name(key), value: short(n), part: most > 0 ? n / most : 0 }));
}

const tried = [['user', 'try-users'], ['pin', 'try-pins'], ['pair', 'try-pairs']]; // kinds, and the form fields with their entities

const linesIn = (field) => [...new Set($(field).value.split('\n').map((l) => l.trim()).filter(Boolean))];

// pairIn parses a line as a pair [user, pin]. It also accepts the key of a pair in an answer.
const pairIn = (line) => line.split(/\s+|\|(?=pin:)/);

// tryDefinition evaluates the definition in the form.
async function tryDefinition(event) {
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
  const problems = absent ? ['This server does not support trials of definitions.'] : error.errors.length ? error.errors : [error.message];
  const about = (p) => tried.find(([kind]) => p.startsWith(`${kinds[kind].field}: `));
  if (error.status === 400) for (const p of problems) $((about(p) || ['', 'try-definition'])[1]).setAttribute('aria-invalid', 'true');
  renderIfChanged($('try-problems'), { problems, at: Date.now() }, () => h('ul', { class: 'problems' }, problems.map((p) => h('li', null, p))));
}

function showAnswer(answer, entities) {
  const missing = answer.missing.map((m) => h('li', null, `${m.feature} of ${m.entity}: ${missingTexts[m.reason] || m.reason}`));
  $('try-answer').replaceChildren(...[
    ...Object.keys(kinds).map((kind) => answerOf(kind, answer, entities[kind])),
    missing.length > 0 && h('ul', { class: 'quiet' }, missing),
    answer.degraded.length > 0 && h('p', { class: 'notice' }, without(answer.degraded)),
    h('p', { class: 'quiet' }, `as of ${clock(answer.as_of)}`)].filter(Boolean));
}

// answerOf returns a table of the values of a kind of entity, or a notice if entities of this kind are missing.
function answerOf(kind, answer, entities) {
  const definitions = answer.definitions.filter((d) => d.entity === kind), { many } = kinds[kind];
  if (!definitions.length) return null;
  if (!entities.length) return h('p', { class: 'notice' }, `${definitions.map((d) => d.name).join(', ')}: features of ${many}. Enter ${many} to evaluate them.`);
  const rows = entities.map((e) => (Array.isArray(e) ? pairName(e) : e)).map((id) => {
    const values = answer.values[id] || {}, reasons = reasonsOf(answer.missing, [id]);
    return [id, ...definitions.map((d) => inFull(values[d.name], reasons.get(d.name) || []))];
  });
  return h('div', { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': `Values of ${many}` },
    table(`Values of ${many}`, [kind, ...definitions.map((d) => d.name)], rows));
}

function inFull(value, reasons) {
  const lines = linesOf(value);
  if (lines === null) return inWords(value, reasons, 'nothing');
  return h('ul', { class: 'plain' }, lines.map((l) => h('li', null, `${l.label} ${l.value}`)));
}

// reset removes the data of the previous user.
export function reset() {
  for (const id of ['features', 'of-pin']) $(id).replaceChildren();
  $('features-as-of').textContent = '';
  for (const id of ['features-degraded', 'of-pin-status']) setText($(id), '');
  $('try-users').value = app.user;
  $('try-problems').replaceChildren();
  $('try-answer').replaceChildren();
}

// start connects the forms. The pins of the feed are suggested.
export function start() {
  $('pin').addEventListener('focus', () => {
    $('pins').replaceChildren(...[...document.querySelectorAll('.card')].map((c) => h('option', { value: c.dataset.pin })));
  });
  $('pin-form').addEventListener('submit', choosePin);
  $('try-definition').value = example;
  $('try').addEventListener('submit', tryDefinition);
}
