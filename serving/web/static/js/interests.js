// Interests: the dictionary of terms that could be interests, the decisions about them, and the interests of the user.

import { $, bar, h, updateList, renderIfChanged, announce, setBar, setText } from './dom.js';
import { call, ofUser, post, query } from './api.js';
import { ago, count, name, percent, short, unread, whole } from './format.js';
import { app, current } from './app.js';
import { restrict } from './permissions.js';

const most = 50; // interests of a user
const first = 50, step = 200, mostTerms = 1000; // terms shown per state; mostTerms is the maximum of the API
const pause = 3000; // ms between automatic refreshes: each one is a scan
let last = 0;
let limit = first; // of requested terms

// The decisions about a candidate: the field of the request that the text is sent in, and the label of the text.
const decisions = {
  accepted: { does: 'is the interest', field: 'interest', label: 'interest' },
  rejected: { does: 'is not an interest, because', field: 'reason', label: 'reason', needed: true },
  merged: { does: 'means the same as', field: 'into', label: 'term', needed: true },
};

// refresh reloads the terms and the interests. Each section shows its own error.
export async function refresh() {
  if (Date.now() - last < pause) return;
  last = Date.now();
  await Promise.all([refreshTerms(), refreshUserInterests()]);
}

async function refreshTerms() {
  const state = $('terms-state').value, requested = limit;
  const isCurrent = () => state === $('terms-state').value && requested === limit;
  try {
    const { terms } = await call(`/v1/dictionary${query({ state, limit })}`);
    if (!isCurrent()) return;
    setText($('terms-status'), summaryOf(terms, state));
    $('terms-more').hidden = terms.length < limit || limit === mostTerms;
    updateList($('terms'), terms, (t) => `${t.state} ${t.term}`, makeTerm, (e, t) => setText(e.querySelector('.fact'), factsOf(t)));
  } catch (error) {
    if (!isCurrent()) return;
    $('terms').replaceChildren();
    $('terms-more').hidden = true;
    setText($('terms-status'), unread('the dictionary', error));
  }
}

// summaryOf returns the number of shown terms, and how to decide about the others.
function summaryOf(terms, state) {
  if (!terms.length) return 'No terms.';
  if (terms.length < limit) return `${count(terms.length, 'term', 'terms')}.`;
  return `The first ${whole(terms.length)} terms, by ${state === 'candidate' ? 'score' : 'name'}; there may be more. To decide about other terms, use POST /v1/dictionary/decisions.`;
}

// showMore shows more terms, and moves the focus to the first of them.
async function showMore() {
  const before = $('terms').children.length;
  limit = Math.min(limit + step, mostTerms);
  await refreshTerms();
  const next = $('terms').children[before];
  if (next) next.querySelector('summary').focus();
}

async function refreshUserInterests() {
  $('user-interests').hidden = !app.user;
  if (!app.user) return;
  const isCurrent = current();
  try {
    const { interests } = await call(ofUser(app.user, `interests${query({ limit: most })}`));
    if (!isCurrent()) return;
    setText($('user-interests-status'), interests.length ? (interests.length < most ? '' : `The strongest ${most}.`) : 'None yet: interests are inferred from positive actions.');
    updateList($('user-interests-list'), interests, (i) => i.interest, makeInterest, showInterest);
  } catch (error) {
    if (isCurrent()) setText($('user-interests-status'), unread('the interests', error));
  }
}

function makeInterest(i) {
  const line = bar(name(i.interest), i.interest);
  line.append(h('span', { class: 'note' }), h('details', null, h('summary'), h('ul')));
  return line;
}

// showInterest shows the newest action behind an interest, and the others as details.
function showInterest(line, i) {
  const [first, ...others] = i.evidence.map((e) => `${e.verb} of ${name(e.pin)}, ${ago(e.time)}`);
  setBar(line, percent(i.share), i.share);
  setText(line.querySelector('.note'), first || '');
  line.querySelector('details').hidden = !others.length;
  renderIfChanged(line.querySelector('summary'), others.length, (n) => `${count(n, 'more action', 'more actions')} for ${name(i.interest)}`);
  renderIfChanged(line.querySelector('ul'), others, (list) => list.map((text) => h('li', null, text)));
}

// factsOf returns the frequency of a term, and the decision.
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
  const what = h('select', { 'aria-label': `Decision about ${t.term}` }, Object.entries(decisions).map(([state, d]) => h('option', { value: state }, d.does)));
  const text = h('input', { autocomplete: 'off', autocapitalize: 'off', spellcheck: 'false' });
  const choose = () => {
    const d = decisions[what.value];
    text.required = Boolean(d.needed);
    text.placeholder = d.needed ? '' : `interest:${t.term}`;
    text.setAttribute('aria-label', d.label);
  };
  what.addEventListener('change', choose);
  choose();
  return h('form', { class: 'inline', 'aria-label': `Decide about ${t.term}`, onsubmit: (event) => {
    event.preventDefault();
    decide({ term: t.term, state: what.value, [decisions[what.value].field]: text.value.trim() }, problem);
  } }, h('span', null, t.term), what, text, restrict(h('button', { type: 'submit' }, 'Decide'), 'operate'));
}

// reopenForm withdraws a decision. Terms that the configuration blocks have no form.
function reopenForm(t, problem) {
  if (t.state === 'blocked') return h('p', { class: 'quiet' }, 'The configuration blocks this term.');
  return h('form', { class: 'inline', 'aria-label': `Reopen ${t.term}`, onsubmit: (event) => {
    event.preventDefault();
    decide({ term: t.term, state: 'candidate' }, problem);
  } }, restrict(h('button', { type: 'submit' }, 'Reopen'), 'operate'));
}

async function decide(decision, problem) {
  try {
    const done = await post('/v1/dictionary/decisions', decision);
    const text = `${done.term} is ${done.state}${done.interest || done.into ? `: ${done.interest || done.into}` : ''}`;
    announce(text);
    setText(problem, '');
    renderIfChanged(problem.parentElement.querySelector('form'), text, () => h('p', { role: 'status' }, `${text}.`)); // until the list omits the term
    $('interests-title').focus();
    last = 0;
    await refresh();
  } catch (error) {
    setText(problem, [error.message, ...(error.errors || [])].join(' · '));
  }
}

// reset removes the data of the previous user.
export function reset() {
  $('user-interests').hidden = true;
  $('user-interests-list').replaceChildren();
  setText($('user-interests-status'), '');
  last = 0;
}

// open makes the next refresh reload the data.
export function open() {
  last = 0;
}

// start connects the controls of the view.
export function start() {
  $('terms-more').addEventListener('click', showMore);
  $('terms-state').addEventListener('change', () => {
    last = 0;
    limit = first;
    refresh();
  });
}
