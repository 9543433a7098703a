// The view of dead letters: the state of the retries by kind, with the rate that an operator sets, and each record.

import { $, h, keyed, put, tell } from './dom.js';
import { call, post, query } from './api.js';
import { ago, count, short, whole } from './format.js';

const pause = 3000; // ms between two looks that nobody asked for
const most = 50; // records shown
const asked = 200; // requested dead letters, and records with their states: several may be of one record
const states = ['waiting', 'sent', 'done', 'parked'];

let looked = 0; // when the last look was
let looking = false; // one at a time: a slow server is not asked twice
let seen = -1; // number of offsets of dead letters at the last read; -1: read them again
let letters = []; // the dead letters, newest last

// look requests the state of the retries, unless it did so recently. records is the number of offsets of dead letters, -1 if
// unknown. The dead letters themselves are read when there are more of them.
export async function look(records) {
  if (looking || Date.now() - looked < pause) return;
  looked = Date.now();
  looking = true;
  await Promise.all([lookAtKinds(), lookAtLetters(records)]);
  looking = false;
}

// again looks at once, at all there is.
async function again() {
  seen = -1;
  looked = Date.now();
  await Promise.all([lookAtKinds(), lookAtLetters(-1)]);
}

// ---- kinds

async function lookAtKinds() {
  try {
    const { kinds } = await call('/v1/deadletters/kinds');
    tell($('kinds-said'), kinds.length ? '' : 'There are none.');
    $('kinds-table').hidden = kinds.length === 0;
    keyed($('kinds'), kinds, (k) => k.kind, makeKind, showKind);
  } catch (error) {
    tell($('kinds-said'), `How the retries stand could not be read: ${error.message}.`);
  }
}

function makeKind(k) {
  const cell = (name) => h('td', { 'data-of': name, class: states.includes(name) ? 'number' : false });
  return h('tr', null, h('th', { scope: 'row', title: k.reason }, k.kind), states.map(cell), ['next', 'rate', 'priority'].map(cell), h('td', null, limitForm(k.kind)));
}

function showKind(row, k) {
  const cell = (name, text) => { const e = row.querySelector(`[data-of=${name}]`); if (e.textContent !== text) e.textContent = text; };
  for (const state of states) cell(state, whole(k.states[state]));
  cell('next', k.next ? ago(k.next) : '–');
  cell('rate', `${k.rate > 0 ? `${short(k.rate)}/s` : 'stopped'}${k.operator ? ` by ${k.operator}` : ''}`);
  cell('priority', String(k.priority));
  const form = row.querySelector('form');
  if (form.dataset.touched || form.contains(document.activeElement)) return; // somebody is about to set it
  form.elements.rate.value = k.rate;
  form.elements.priority.value = k.priority;
}

function limitForm(kind) {
  const set = (withRate) => {
    const limit = { kind, priority: Number(form.elements.priority.value) };
    if (withRate) limit.rate = Number(form.elements.rate.value);
    setLimit(limit, form);
  };
  const form = h('form', { class: 'inline', 'aria-label': `Limit of ${kind}`, onsubmit: (event) => { event.preventDefault(); set(true); }, oninput: () => { form.dataset.touched = 'yes'; } },
    h('label', null, 'a second ', h('input', { name: 'rate', type: 'number', min: 0, max: 10000, step: 'any', required: true })),
    h('label', null, 'priority ', h('input', { name: 'priority', type: 'number', min: -2147483648, max: 2147483647, step: 1, required: true })),
    h('button', { type: 'submit' }, 'Set'),
    h('button', { type: 'button', onclick: () => set(false) }, 'As configured'));
  return form;
}

async function setLimit(limit, form) {
  try {
    await post('/v1/deadletters/limits', limit);
    delete form.dataset.touched;
    tell($('kinds-did'), `${limit.kind}: ${limit.rate === undefined ? 'as often as is configured' : limit.rate > 0 ? `${short(limit.rate)} a second` : 'no retries'}, priority ${limit.priority}.`);
    looked = Date.now() - pause + 500; // it is in force a moment later
  } catch (error) {
    tell($('kinds-did'), `${limit.kind}: ${[error.message, ...(error.errors || [])].join(' · ')}`);
  }
}

// ---- dead letters

async function lookAtLetters(records) {
  const problems = [];
  if (seen < 0 || (records >= 0 && records !== seen)) {
    try {
      letters = (await call(`/v1/deadletters${query({ limit: asked })}`)).dead_letters;
      seen = records;
    } catch (error) {
      problems.push(`The dead letters could not be read: ${error.message}.`);
    }
  }
  const state = $('letters-state').value;
  let retried = [];
  try {
    retried = (await call(`/v1/deadletters/retries${query({ limit: asked, ...(state && { state }) })}`)).dead_letters;
  } catch (error) {
    problems.push(`How far their retries are could not be read: ${error.message}.`);
  }
  if (state === $('letters-state').value) showRecords(recordsOf(letters, retried, state), problems);
}

// recordsOf joins the dead letters of each record, one per failure, with the state of its retries. A dead letter without such
// a state cannot be decoded, has just arrived, or has expired.
function recordsOf(letters, retried, state) {
  const by = new Map();
  for (const l of state ? [] : letters) {
    const key = l.topic ? keyOf(l.topic, l.first_partition, l.first_offset, l.group) : `dead letter ${l.dead_letter_partition}/${l.dead_letter_offset}`;
    by.set(key, { key, letter: l, topic: l.topic, partition: l.first_partition, offset: l.first_offset, group: l.group, reason: l.reason, attempts: l.attempts, at: l.time });
  }
  const newest = new Map(letters.map((l) => [keyOf(l.topic, l.first_partition, l.first_offset, l.group), l]));
  for (const r of retried) {
    const key = keyOf(r.topic, r.partition, r.offset, r.group);
    by.set(key, { ...r, key, letter: newest.get(key), at: r.since });
  }
  return [...by.values()].sort((a, b) => Date.parse(b.at) - Date.parse(a.at)).slice(0, most);
}

const keyOf = (topic, partition, offset, group) => `${topic}/${partition}/${offset}/${group}`;
const rests = (r) => r.state === 'done' || r.state === 'sent';

function showRecords(list, problems) {
  const by = states.map((s) => [list.filter((r) => r.state === s).length, s]).filter(([n]) => n).map(([n, s]) => `${n} ${s}`);
  const told = list.length ? `${count(list.length, 'record', 'records')}${list.length === most ? ' and perhaps more' : ''}${by.length ? `: ${by.join(', ')}` : ''}.` : 'There are none.';
  tell($('letters-said'), [...problems, problems.length && !list.length ? '' : told].filter(Boolean).join(' '));
  $('letters-retry').disabled = list.every(rests);
  keyed($('letters'), list, (r) => r.key, makeRecord, showRecord);
}

function makeRecord(r) {
  const place = r.topic ? `${r.topic}/${r.partition} at ${r.offset}` : `dead letter ${r.letter.dead_letter_partition} at ${r.letter.dead_letter_offset}`;
  return h('li', null, h('details', null, h('summary', null, h('span', { class: 'fate' }), h('strong', null, place), h('span', { class: 'next quiet' }), h('span', { class: 'reason' })), h('dl')));
}

function showRecord(e, r) {
  e.classList.toggle('open', !rests(r));
  tell(e.querySelector('.fate'), r.state || 'not known');
  tell(e.querySelector('.next'), [r.attempts ? count(r.attempts, 'retry', 'retries') : '', r.due ? `${Date.parse(r.due) > Date.now() ? 'next' : 'due'} ${ago(r.due)}` : ''].filter(Boolean).join(' · '));
  tell(e.querySelector('.reason'), r.reason);
  put(e.querySelector('dl'), r, facts);
}

function facts(r) {
  const fact = (name, value) => value && [h('dt', null, name), h('dd', null, value)];
  const time = (at) => at && new Date(at).toISOString();
  const l = r.letter;
  return [
    fact('Could not be processed by', r.group || 'unknown'),
    fact('State', r.state ? `${r.state} since ${time(r.since)}${r.why ? `: ${r.why}` : ''}` : 'not known to what retries it: it has just come, is long forgotten, or cannot be read'),
    fact('Retries', whole(r.attempts)),
    fact('Next retry', time(r.due)),
    fact('Kind', r.kind && h('code', null, r.kind)),
    fact('Reason', r.reason),
    fact('Arrived', l && time(l.time)),
    fact('Key', l && h('code', null, spelled(bytes(l.key)))),
    fact('Value', l ? (l.value === null ? 'empty, or too long to be listed' : h('pre', { tabindex: '0' }, dump(bytes(l.value)))) : 'older than the listed dead letters'),
  ].flat().filter(Boolean);
}

const bytes = (base64) => (base64 ? Uint8Array.from(atob(base64), (c) => c.charCodeAt(0)) : new Uint8Array());
const spelled = (list) => new TextDecoder().decode(list).replace(/\p{C}/gu, '\uFFFD') || 'none';

// dump writes bytes as numbers with the letters they may be, sixteen a line.
function dump(list) {
  const out = [];
  for (let i = 0; i < list.length; i += 16) {
    const line = [...list.slice(i, i + 16)];
    const letters = line.map((b) => (b >= 32 && b < 127 ? String.fromCharCode(b) : '·')).join('');
    out.push(`${i.toString(16).padStart(4, '0')}  ${line.map((b) => b.toString(16).padStart(2, '0')).join(' ').padEnd(47)}  ${letters}`);
  }
  return out.join('\n');
}

async function retry() {
  $('letters-retry').disabled = true;
  try {
    const done = await call('/v1/deadletters/retry', { method: 'POST', patience: 90000 });
    tell($('letters-did'), `${count(done.published, 'dead letter is', 'dead letters are')} retried${done.skipped ? `, ${done.skipped} skipped` : ''}.`);
    await again();
  } catch (error) {
    $('letters-retry').disabled = false;
    tell($('letters-did'), `The result is unknown: ${error.message}.`);
  }
}

// start has the controls work.
export function start() {
  $('letters-look').addEventListener('click', again);
  $('letters-retry').addEventListener('click', retry);
  $('letters-state').addEventListener('change', again);
}

// open has the next look ask for all, however lately the last one was.
export function open() {
  seen = -1;
  looked = 0;
}
