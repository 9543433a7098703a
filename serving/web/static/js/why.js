// Why a pin is, was, or is not in the feed, as a panel under whatever names the pin.

import { h } from './dom.js';
import { call, ofUser, query } from './api.js';
import { name, ago } from './format.js';
import { app } from './app.js';

const fates = {
  shown: 'It was shown',
  pending: 'A visit is about to show it',
  next: 'A visit now would show it',
  waiting: 'It waits for a later visit',
  held: 'It is held back for a later session',
  hidden: 'It may not be seen',
  out: 'It is no candidate',
};

const reasons = {
  outranked: 'others are better, or their source is due',
  beyond_head: 'it is not among the best of its pool that a chunk is made of',
  cap_author: 'too many of its author stand before it',
  cap_board: 'too many of its board stand before it',
  cap_interest: 'too many of one interest stand before it',
  no_share: 'its sources have no share in this feed',
  own_rule: 'a rule of this installation does not admit it now',
  weak: 'it is too far below the best, and the session has shown its share of such',
  deferred: 'a visit of this session deferred it for being weak',
  deleted: 'the pin is deleted',
  author_deleted: 'its author is deleted',
  own: 'nobody is shown their own pins',
  block: 'there is a block',
  no_edge: 'the user follows nothing that would bring it',
  followee_cap: 'the follow that would bring it is over the cap of followees',
  forgotten: 'it is as old as what is no longer remembered as seen',
  expired: 'it is older than candidates may be',
  deferral_expired: 'it was deferred for too long',
  cap: 'the pool is full of better ones',
  undelivered: 'nothing has brought it, or what did was dropped',
  unknown: 'there is no such pin',
  user_deleted: 'the user is deleted',
  seen: 'it was shown',
};

const inWords = (reason) => reasons[reason] || reason;

// explain fills a panel with why; what cannot be said is said there.
export async function explain(panel, pin) {
  panel.replaceChildren(h('p', { class: 'quiet' }, 'asking …'));
  panel.hidden = false;
  try {
    const why = await call(ofUser(app.user, `feed/why${query({ pin, feed: app.feed })}`));
    panel.replaceChildren(...answer(why));
  } catch (error) {
    panel.replaceChildren(h('p', { class: 'bad' }, `It cannot be said: ${error.message}`));
  }
}

function answer(why) {
  return [
    h('p', { class: 'fate' }, sentence(why)),
    why.by.length > 0 && h('p', null, 'Because of ', why.by.map(name).join(', '), '.'),
    ...why.candidates.map(candidate),
    why.degraded.length > 0 && h('p', { class: 'quiet' }, `Said without: ${why.degraded.join(', ')}.`),
  ].filter(Boolean);
}

function sentence(why) {
  const parts = [fates[why.fate] || why.fate];
  if (why.shown) parts.push(` ${ago(why.shown.time)}, as number ${why.shown.position} of all`);
  if (why.shown && why.shown.source) parts.push(`, from ${why.shown.source}`);
  if (why.place) parts.push(` in place ${why.place}`);
  if (why.reason) parts.push(`: ${inWords(why.reason)}`);
  if (why.since) parts.push(`, ${ago(why.since)}`);
  return `${parts.join('')}.`;
}

// candidate says how the pin stands in one pool, with the parts of its score.
function candidate(c) {
  const place = c.reason ? `does not wait: ${inWords(c.reason)}` : `number ${c.rank} of those that wait`;
  const edges = c.edges.length ? ` Brought by ${c.edges.map(name).join(', ')}.` : '';
  const parts = Object.entries(c.parts).filter(([part, v]) => v !== 0 || part === 'created');
  return h('div', { class: 'candidate' },
    h('p', null, h('strong', null, c.source), ` · ${place}.${edges}`),
    h('table', { class: 'parts' }, h('caption', { class: 'hidden' }, `Score in ${c.source}, by part`),
      h('tbody', null, parts.map(([part, v]) => h('tr', null, h('th', { scope: 'row' }, part.replaceAll('_', ' ')), h('td', null, signed(v)))),
        h('tr', { class: 'sum' }, h('th', { scope: 'row' }, 'score'), h('td', null, c.score.toFixed(3))))));
}

const signed = (v) => (v < 0 ? `−${(-v).toFixed(3)}` : `+${v.toFixed(3)}`);

// opener makes a button that opens and closes a panel with why.
export function opener(pin, label, panel, properties) {
  const button = h('button', { type: 'button', 'aria-expanded': 'false', 'aria-controls': panel.id, ...properties, onclick: () => {
    const opens = button.getAttribute('aria-expanded') === 'false';
    button.setAttribute('aria-expanded', String(opens));
    if (opens) explain(panel, pin);
    else panel.hidden = true;
  } }, label);
  return button;
}
