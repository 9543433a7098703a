// Interests: the dictionary of terms that could be some, what is decided about them, and what the user of the page is
// interested in.

import { $, bar, h, keyed, put, say, setBar, tell } from './dom.js';
import { call, ofUser, post, query } from './api.js';
import { ago, count, name, percent, short, whole } from './format.js';
import { app, current } from './app.js';

const most = 50; // interests of a user
const first = 50, step = 200, mostTerms = 1000; // terms shown of a state: the last is what the API answers at most
const pause = 3000; // ms between two looks that nobody asked for: each is a scan
let last = 0;
let limit = first; // terms that are asked for

// What can be decided about a candidate: the field of the call that its text is, and what the text is asked for as.
const decisions = {
  accepted: { does: 'is the interest', field: 'interest', asks: 'which interest' },
  rejected: { does: 'is none, because', field: 'reason', asks: 'why', needed: true },
  merged: { does: 'means the same as', field: 'into', asks: 'which term', needed: true },
};

// look asks for what may have changed. What cannot be asked says so in its place.
export async function look() {
  if (Date.now() - last < pause) return;
  last = Date.now();
  await Promise.all([lookAtTerms(), lookAtUser()]);
}

async function lookAtTerms() {
  const state = $('terms-state').value, asked = limit;
  const matters = () => state === $('terms-state').value && asked === limit;
  try {
    const { terms } = await call(`/v1/dictionary${query({ state, limit })}`);
    if (!matters()) return;
    tell($('terms-said'), saidOf(terms, state));
    $('terms-more').hidden = terms.length < limit || limit === mostTerms;
    keyed($('terms'), terms, (t) => `${t.state} ${t.term}`, makeTerm, (e, t) => tell(e.querySelector('.fact'), factsOf(t)));
  } catch (error) {
    if (!matters()) return;
    $('terms').replaceChildren();
    $('terms-more').hidden = true;
    tell($('terms-said'), `The dictionary is not there: ${error.message}.`);
  }
}

// saidOf says which terms are shown, and how to reach others.
function saidOf(terms, state) {
  if (!terms.length) return 'There are none.';
  if (terms.length < limit) return `${count(terms.length, 'term', 'terms')}.`;
  return `The first ${whole(terms.length)} terms, by ${state === 'candidate' ? 'score' : 'name'}; there may be more. One that is not shown is decided about by smartfeed interests accept, reject, merge or reopen.`;
}

// showMore shows more terms, and brings the person to the first of them.
async function showMore() {
  const before = $('terms').children.length;
  limit = Math.min(limit + step, mostTerms);
  await lookAtTerms();
  const next = $('terms').children[before];
  if (next) next.querySelector('summary').focus();
}

async function lookAtUser() {
  $('mine').hidden = !app.user;
  if (!app.user) return;
  const matters = current();
  try {
    const { interests } = await call(ofUser(app.user, `interests${query({ limit: most })}`));
    if (!matters()) return;
    tell($('mine-said'), interests.length ? (interests.length < most ? '' : `The strongest ${most}.`) : 'Nothing yet: interests are inferred from what somebody does.');
    keyed($('mine-list'), interests, (i) => i.interest, makeInterest, showInterest);
  } catch (error) {
    if (matters()) tell($('mine-said'), `The interests are not there: ${error.message}.`);
  }
}

function makeInterest(i) {
  const line = bar(name(i.interest), i.interest);
  line.append(h('span', { class: 'note' }), h('details', null, h('summary'), h('ul')));
  return line;
}

// showInterest says which actions say so: the first at once, and the others where they are asked for.
function showInterest(line, i) {
  const [first, ...others] = i.evidence.map((e) => `${e.verb} of ${name(e.pin)}, ${ago(e.time)}`);
  setBar(line, percent(i.share), i.share);
  tell(line.querySelector('.note'), first || '');
  line.querySelector('details').hidden = !others.length;
  put(line.querySelector('summary'), others.length, (n) => `${count(n, 'more action', 'more actions')} for ${name(i.interest)}`);
  put(line.querySelector('ul'), others, (list) => list.map((text) => h('li', null, text)));
}

// factsOf says how common a term is, and what was decided.
function factsOf(t) {
  const decided = [t.interest, t.into, t.reason, t.operator && `by ${t.operator}`, t.decided && ago(t.decided)].filter(Boolean).join(', ');
  return `score ${short(t.score)} · ${count(t.pins, 'pin', 'pins')} of ${count(t.people, 'person', 'people')}, ${percent(t.recent)} recent${decided ? ` · ${decided}` : ''}`;
}

function makeTerm(t) {
  const problem = h('p', { class: 'notice', role: 'alert', hidden: true });
  return h('li', null, h('details', null,
    h('summary', null, h('strong', null, t.term), h('span', { class: 'fact quiet' })),
    t.state === 'candidate' ? decideForm(t, problem) : reopenForm(t, problem), problem));
}

function decideForm(t, problem) {
  const what = h('select', { 'aria-label': `What ${t.term} is` }, Object.entries(decisions).map(([state, d]) => h('option', { value: state }, d.does)));
  const text = h('input', { autocomplete: 'off', autocapitalize: 'off', spellcheck: 'false' });
  const choose = () => {
    const d = decisions[what.value];
    text.required = Boolean(d.needed);
    text.placeholder = d.needed ? '' : `interest:${t.term}`;
    text.setAttribute('aria-label', d.asks);
  };
  what.addEventListener('change', choose);
  choose();
  return h('form', { class: 'inline', 'aria-label': `Decide about ${t.term}`, onsubmit: (event) => {
    event.preventDefault();
    decide({ term: t.term, state: what.value, [decisions[what.value].field]: text.value.trim() }, problem);
  } }, h('span', null, t.term), what, text, h('button', { type: 'submit' }, 'Decide'));
}

// reopenForm takes a decision back. What the configuration blocks is not decided about here.
function reopenForm(t, problem) {
  if (t.state === 'blocked') return h('p', { class: 'quiet' }, 'The configuration blocks it.');
  return h('form', { class: 'inline', 'aria-label': `Decide about ${t.term} again`, onsubmit: (event) => {
    event.preventDefault();
    decide({ term: t.term, state: 'candidate' }, problem);
  } }, h('button', { type: 'submit' }, 'Take the decision back'));
}

async function decide(decision, problem) {
  try {
    const done = await post('/v1/dictionary/decisions', decision);
    const told = `${done.term} is ${done.state}${done.interest || done.into ? `: ${done.interest || done.into}` : ''}`;
    say(told);
    tell(problem, '');
    put(problem.parentElement.querySelector('form'), told, () => h('p', { role: 'status' }, `${told}.`)); // until the list is without it
    $('interests-title').focus();
    last = 0;
    await look();
  } catch (error) {
    tell(problem, [error.message, ...(error.errors || [])].join(' · '));
  }
}

// leave takes what belongs to the user before off the page.
export function leave() {
  $('mine').hidden = true;
  $('mine-list').replaceChildren();
  tell($('mine-said'), '');
  last = 0;
}

// open has the next look ask, however lately the last one was.
export function open() {
  last = 0;
}

// start has the view's controls work.
export function start() {
  $('terms-more').addEventListener('click', showMore);
  $('terms-state').addEventListener('change', () => {
    last = 0;
    limit = first;
    look();
  });
}
