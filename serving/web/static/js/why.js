// A panel that explains why a pin is, was, or is not in the feed.

import { h } from './dom.js';
import { call, ofUser, query } from './api.js';
import { name, ago } from './format.js';
import { app } from './app.js';
import { relative, scoreOf, signed, titleOf } from './scores.js';

const fates = {
  shown: 'Shown',
  pending: 'A visit is about to show the pin',
  next: 'A visit now would show the pin',
  waiting: 'Waiting for a later visit',
  deferred: 'Deferred to a later session',
  hidden: 'Hidden from this user',
  out: 'Not a candidate',
};

const reasons = {
  outranked: 'other candidates have higher scores, or the share of their source is due',
  beyond_head: 'not among the best candidates of the pool, from which a chunk is composed',
  cap_author: 'too many pins of this author before it',
  cap_board: 'too many pins of this board before it',
  cap_interest: 'too many pins of one interest before it',
  similar: 'similar to a pin before it',
  no_share: 'the sources of the pin have no share in this feed',
  own_rule: 'a rule of this deployment rejects the pin now',
  weak: 'the score is too far below the best, and the budget of the session is spent',
  deferred_earlier: 'deferred by a visit of this session because the score is weak',
  deleted: 'the pin is deleted',
  author_deleted: 'the author is deleted',
  own: 'users do not see their own pins',
  block: 'a block between the user and the author, board or interest',
  no_edge: 'the user follows no author, board or interest of the pin',
  followee_cap: 'the user has too many followees, and this follow is above the limit',
  seen_trimmed: 'older than the record of seen pins',
  expired: 'older than the maximum age of candidates',
  deferral_expired: 'deferred for too long',
  cap: 'the pool is full of candidates with higher scores',
  undelivered: 'not delivered, or dropped after delivery',
  unknown: 'unknown pin',
  user_deleted: 'the user is deleted',
  seen: 'already shown',
};

const inWords = (reason) => reasons[reason] || reason;

// explain fills a panel with the explanation, or with the error.
export async function explain(panel, pin) {
  panel.replaceChildren(h('p', { class: 'quiet' }, 'loading …'));
  panel.hidden = false;
  try {
    const why = await call(ofUser(app.user, `feed/why${query({ pin, feed: app.feed })}`));
    panel.replaceChildren(...answer(why));
  } catch (error) {
    panel.replaceChildren(h('p', { class: 'bad' }, `Cannot explain the pin: ${error.message}`));
  }
}

function answer(why) {
  return [
    h('p', { class: 'fate' }, sentence(why)),
    why.by.length > 0 && h('p', null, 'Because of ', why.by.map(name).join(', '), '.'),
    ...why.candidates.map(candidate),
    why.degraded.length > 0 && h('p', { class: 'quiet' }, `Unavailable: ${why.degraded.join(', ')}.`),
  ].filter(Boolean);
}

function sentence(why) {
  const parts = [fates[why.fate] || why.fate];
  if (why.shown) parts.push(` ${ago(why.shown.time)}, at position ${why.shown.position}`);
  if (why.shown && why.shown.source) parts.push(`, from ${why.shown.source}`);
  if (why.place) parts.push(` at position ${why.place}`);
  if (why.reason) parts.push(`: ${inWords(why.reason)}`);
  if (why.since) parts.push(`, ${ago(why.since)}`);
  return `${parts.join('')}.`;
}

// candidate returns the rank of the pin in one pool, and the terms of its score.
function candidate(c) {
  const place = c.reason ? `not a visible candidate: ${inWords(c.reason)}` : `rank ${c.rank} of the visible candidates`;
  const edges = c.edges.length ? ` Delivered by ${c.edges.map(name).join(', ')}.` : '';
  const parts = Object.entries(c.parts).filter(([part, v]) => v !== 0 || part === 'created');
  return h('div', { class: 'candidate' },
    h('p', null, h('strong', null, c.source), ` · ${place}.${edges}`),
    h('table', { class: 'parts' }, h('caption', { class: 'hidden' }, `Terms of the score in ${c.source}`),
      h('tbody', null, parts.map(term),
        h('tr', { class: 'sum' }, h('th', { scope: 'row' }, 'score'), h('td', { title: titleOf(c.score) }, scoreOf(c.score, 3))))));
}

// term returns a term of a score. The creation is shown relative to now, as the score is.
function term([part, v]) {
  const value = part === 'created' ? relative(v) : v;
  return h('tr', null, h('th', { scope: 'row' }, part.replaceAll('_', ' ')), h('td', { title: value === v ? false : `stored: ${v}` }, signed(value, 3)));
}

// opener returns a button that opens and closes the panel of a pin.
export function opener(pin, label, panel, properties) {
  const button = h('button', { type: 'button', 'aria-expanded': 'false', 'aria-controls': panel.id, ...properties, onclick: () => {
    const opens = button.getAttribute('aria-expanded') === 'false';
    button.setAttribute('aria-expanded', String(opens));
    if (opens) explain(panel, pin);
    else panel.hidden = true;
  } }, label);
  return button;
}
