// The view of dead letters: the state of the retries by kind, with the rate that an operator sets, and each record.

import { $, h, updateList, renderIfChanged, setText } from './dom.js';
import { call, post, query } from './api.js';
import { ago, count, short, unread, whole } from './format.js';
import { permits, restrict } from './permissions.js';

const pause = 3000; // ms between automatic refreshes
const most = 50; // records shown
const requested = 200; // dead letters, and records with their states; several may be of one record
const states = ['waiting', 'sent', 'done', 'parked'];

let refreshedAt = 0; // time of the last refresh
let refreshing = false; // one at a time, so that a slow server does not get more requests
let seen = -1; // number of offsets of dead letters at the last read; -1: read them again
let deadLetters = []; // newest last

// unsettled is the number of records by group that wait for a retry or are parked.
export const unsettled = new Map();

// refresh requests the state of the retries, unless it did so recently. records is the number of offsets of dead letters, -1 if
// unknown. The dead letters themselves are read when there are more of them.
export async function refresh(records) {
  if (refreshing || Date.now() - refreshedAt < pause) return;
  refreshedAt = Date.now();
  refreshing = true;
  await Promise.all([refreshKinds(), refreshDeadLetters(records)]);
  refreshing = false;
}

// again reloads everything at once.
async function again() {
  seen = -1;
  refreshedAt = Date.now();
  await Promise.all([refreshKinds(), refreshDeadLetters(-1)]);
}

// ---- kinds

async function refreshKinds() {
  try {
    const { kinds } = await call('/v1/dead-letters/kinds');
    unsettled.clear();
    for (const k of kinds) unsettled.set(k.group, (unsettled.get(k.group) || 0) + k.states.waiting + k.states.parked);
    setText($('kinds-status'), kinds.length ? '' : 'None.');
    $('kinds-table').hidden = kinds.length === 0;
    updateList($('kinds'), kinds, (k) => k.kind, makeKind, showKind);
  } catch (error) {
    setText($('kinds-status'), unread('the state of the retries', error));
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
  if (form.dataset.touched || form.contains(document.activeElement)) return; // an operator is editing it
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
    h('label', null, 'per second ', h('input', { name: 'rate', type: 'number', min: 0, max: 10000, step: 'any', required: true })),
    h('label', null, 'priority ', h('input', { name: 'priority', type: 'number', min: -2147483648, max: 2147483647, step: 1, required: true })),
    restrict(h('button', { type: 'submit' }, 'Set'), 'operate'),
    restrict(h('button', { type: 'button', onclick: () => set(false) }, 'As configured'), 'operate'));
  return form;
}

async function setLimit(limit, form) {
  try {
    await post('/v1/dead-letters/limits', limit);
    delete form.dataset.touched;
    setText($('kinds-result'), `${limit.kind}: ${limit.rate === undefined ? 'the configured rate' : limit.rate > 0 ? `${short(limit.rate)} per second` : 'no retries'}, priority ${limit.priority}.`);
    refreshedAt = Date.now() - pause + 500; // it takes effect a moment later
  } catch (error) {
    setText($('kinds-result'), `${limit.kind}: ${[error.message, ...(error.errors || [])].join(' · ')}`);
  }
}

// ---- dead letters

async function refreshDeadLetters(records) {
  const problems = [];
  if (seen < 0 || (records >= 0 && records !== seen)) {
    try {
      deadLetters = (await call(`/v1/dead-letters${query({ limit: requested })}`)).dead_letters;
      seen = records;
    } catch (error) {
      problems.push(unread('the dead letters', error));
    }
  }
  const state = $('dead-letters-state').value;
  let retried = [];
  try {
    retried = (await call(`/v1/dead-letters/retries${query({ limit: requested, ...(state && { state }) })}`)).dead_letters;
  } catch (error) {
    problems.push(unread('the states of their retries', error));
  }
  if (state === $('dead-letters-state').value) showRecords(recordsOf(deadLetters, retried, state), problems);
}

// recordsOf joins the dead letters of each record, one per failure, with the state of its retries. A dead letter without such
// a state cannot be decoded, has just arrived, or has expired.
function recordsOf(deadLetters, retried, state) {
  const by = new Map();
  for (const l of state ? [] : deadLetters) {
    const key = l.topic ? keyOf(l.topic, l.first_partition, l.first_offset, l.group) : `dead letter ${l.dead_letter_partition}/${l.dead_letter_offset}`;
    by.set(key, { key, deadLetter: l, topic: l.topic, partition: l.first_partition, offset: l.first_offset, group: l.group, reason: l.reason, attempts: l.attempts, at: l.time });
  }
  const newest = new Map(deadLetters.map((l) => [keyOf(l.topic, l.first_partition, l.first_offset, l.group), l]));
  for (const r of retried) {
    const key = keyOf(r.topic, r.partition, r.offset, r.group);
    by.set(key, { ...r, key, deadLetter: newest.get(key), at: r.since });
  }
  return [...by.values()].sort((a, b) => Date.parse(b.at) - Date.parse(a.at)).slice(0, most);
}

const keyOf = (topic, partition, offset, group) => `${topic}/${partition}/${offset}/${group}`;
const isSettled = (r) => r.state === 'done' || r.state === 'sent';

function showRecords(list, problems) {
  const by = states.map((s) => [list.filter((r) => r.state === s).length, s]).filter(([n]) => n).map(([n, s]) => `${n} ${s}`);
  const summary = list.length ? `${count(list.length, 'record', 'records')}${list.length === most ? ' or more' : ''}${by.length ? `: ${by.join(', ')}` : ''}.` : 'None.';
  setText($('dead-letters-status'), [...problems, problems.length && !list.length ? '' : summary].filter(Boolean).join(' '));
  $('dead-letters-retry').disabled = list.every(isSettled) || !permits('operate');
  updateList($('dead-letters'), list, (r) => r.key, makeRecord, showRecord);
}

function makeRecord(r) {
  const place = r.topic ? `${r.topic}/${r.partition} at ${r.offset}` : `dead letter ${r.deadLetter.dead_letter_partition} at ${r.deadLetter.dead_letter_offset}`;
  return h('li', null, h('details', null, h('summary', null, h('span', { class: 'fate' }), h('strong', null, place), h('span', { class: 'next quiet' }), h('span', { class: 'reason' })), h('dl')));
}

function showRecord(e, r) {
  e.classList.toggle('open', !isSettled(r));
  setText(e.querySelector('.fate'), r.state || 'unknown');
  setText(e.querySelector('.next'), [r.attempts ? count(r.attempts, 'retry', 'retries') : '', r.due ? `${Date.parse(r.due) > Date.now() ? 'next' : 'due'} ${ago(r.due)}` : ''].filter(Boolean).join(' · '));
  setText(e.querySelector('.reason'), r.reason);
  renderIfChanged(e.querySelector('dl'), r, facts);
}

function facts(r) {
  const fact = (name, value) => value && [h('dt', null, name), h('dd', null, value)];
  const time = (at) => at && new Date(at).toISOString();
  const l = r.deadLetter;
  return [
    fact('Could not be processed by', r.group || 'unknown'),
    fact('State', r.state ? `${r.state} since ${time(r.since)}${r.why ? `: ${r.why}` : ''}` : 'unknown: the dead letter has just arrived, has expired, or cannot be decoded'),
    fact('Retries', whole(r.attempts)),
    fact('Next retry', time(r.due)),
    fact('Kind', r.kind && h('code', null, r.kind)),
    fact('Reason', r.reason),
    fact('Arrived', l && time(l.time)),
    fact('Key', l && h('code', null, spelled(bytes(l.key)))),
    fact('Value', l ? (l.value === null ? 'empty, or too long for the list' : h('pre', { tabindex: '0' }, dump(bytes(l.value)))) : 'older than the listed dead letters'),
  ].flat().filter(Boolean);
}

const bytes = (base64) => (base64 ? Uint8Array.from(atob(base64), (c) => c.charCodeAt(0)) : new Uint8Array());
const spelled = (list) => new TextDecoder().decode(list).replace(/\p{C}/gu, '\uFFFD') || 'none';

// dump returns a hex dump with ASCII characters, sixteen bytes per line.
function dump(list) {
  const out = [];
  for (let i = 0; i < list.length; i += 16) {
    const line = [...list.slice(i, i + 16)];
    const text = line.map((b) => (b >= 32 && b < 127 ? String.fromCharCode(b) : '·')).join('');
    out.push(`${i.toString(16).padStart(4, '0')}  ${line.map((b) => b.toString(16).padStart(2, '0')).join(' ').padEnd(47)}  ${text}`);
  }
  return out.join('\n');
}

async function retry() {
  $('dead-letters-retry').disabled = true;
  try {
    const done = await call('/v1/dead-letters/retry', { method: 'POST', timeout: 90000 });
    setText($('dead-letters-result'), `${count(done.published, 'dead letter is', 'dead letters are')} retried${done.skipped ? `, ${done.skipped} skipped` : ''}.`);
    await again();
  } catch (error) {
    $('dead-letters-retry').disabled = false;
    setText($('dead-letters-result'), `The result is unknown: ${error.message}.`);
  }
}

// start connects the controls.
export function start() {
  $('dead-letters-refresh').addEventListener('click', again);
  $('dead-letters-retry').addEventListener('click', retry);
  $('dead-letters-state').addEventListener('change', again);
}

// open makes the next refresh reload everything.
export function open() {
  seen = -1;
  refreshedAt = 0;
}
