// The feed of a user.

import { $, h, s, announce, setText } from './dom.js';
import { call, listen, ofUser, publish, query } from './api.js';
import { ago, count, hash, name, sourceClass, unread, without } from './format.js';
import { app, current } from './app.js';
import { permits, restrict } from './permissions.js';
import { scoreOf, titleOf } from './scores.js';
import { opener } from './why.js';

const pageSize = 24; // items per page: fills rows of two, three and four cards
const verbs = ['save', 'click', 'hide']; // actions on an item
const preview = 'Preview: a visit now would show these items. Nothing is marked as shown.';

let cursor = null; // of the next older page
let shown = 0; // items on the page
let hasOld = false; // the page has an item that was shown before
let degraded = new Set(); // degraded parts of the visit and of the pages below it
let mix = new Map(); // items on the page by source
let stop = () => {}; // ends the stream of counts
let visitKey = ''; // Idempotency-Key of a visit without an answer; '': none

// load requests the first page: of a visit, or of a peek, which changes nothing. A repeated visit takes no further items if the
// answer to the first attempt was lost.
async function load(visiting) {
  const parameters = { limit: pageSize, feed: app.feed };
  if (!visiting) return call(ofUser(app.user, `feed${query({ ...parameters, peek: true })}`));
  visitKey ||= randomID();
  const page = await call(ofUser(app.user, `visits${query(parameters)}`), { method: 'POST', headers: { 'Idempotency-Key': visitKey } });
  visitKey = '';
  return page;
}

// open shows the first page, with new items above older ones. It returns whether the API answered.
export async function open(visiting) {
  app.visit++;
  const isCurrent = current();
  $('fresh').hidden = true;
  try {
    const page = await load(visiting);
    if (!isCurrent()) return false;
    clear();
    setText($('preview'), visiting ? '' : preview);
    show(page);
    announcePage(page);
    return true;
  } catch (error) {
    if (isCurrent()) setText($('notice'), unread(`the feed of ${app.user}`, error));
    return false;
  }
}

function announcePage(page) {
  const fresh = page.items.filter((i) => i.new).length;
  announce(`${count(page.items.length, 'item', 'items')}, ${fresh} of them new`);
}

// reset removes the data of the previous user.
export function reset() {
  stop();
  stop = () => {};
  visitKey = '';
  clear();
  $('visit').hidden = !app.user;
  $('feed-title').textContent = app.user ? `${name(app.user)}’s feed` : 'Feed';
  $('mix').textContent = '';
  for (const id of ['fresh', 'more', 'end', 'empty', 'degraded', 'preview']) $(id).hidden = true;
}

// follow opens the stream of counts, which announces new items.
export function follow() {
  stop();
  stop = listen(ofUser(app.user, 'feed/events'), (event, data) => { if (event === 'new') announceNew(data.count); });
}

function announceNew(waiting) {
  $('fresh').textContent = `Visit: ${waiting >= 100 ? '100 or more new items' : count(waiting, 'new item', 'new items')}`;
  $('fresh').hidden = waiting === 0;
}

function clear() {
  $('items').replaceChildren();
  shown = 0;
  hasOld = false;
  degraded = new Set();
  mix = new Map();
}

async function older() {
  const unseen = current(), from = cursor;
  const isCurrent = () => unseen() && cursor === from; // a visit in flight may finish first, with its own page
  $('more').disabled = true; // one page at a time
  try {
    const page = await call(ofUser(app.user, `feed${query({ limit: pageSize, cursor })}`));
    if (!isCurrent()) return;
    const first = show(page);
    if (first) first.querySelector('h2').focus();
    announce(`${count(page.items.length, 'older item', 'older items')}`);
  } catch (error) {
    if (isCurrent()) setText($('notice'), unread('older items', error));
  } finally {
    $('more').disabled = false;
  }
}

// show appends a page and returns its first card.
function show(page) {
  cursor = page.next;
  const cards = page.items.map(add);
  setText($('notice'), '');
  for (const part of page.degraded) degraded.add(part);
  setText($('degraded'), without([...degraded]));
  $('more').hidden = !cursor;
  $('end').hidden = Boolean(cursor) || shown === 0;
  $('mix').textContent = [...mix].sort((a, b) => b[1] - a[1]).map(([source, n]) => `${n} ${source}`).join(' · ');
  setText($('empty'), shown ? '' : emptiness());
  return cards[0];
}

// emptiness returns why the page has no items. Only a complete last page proves that the feed is empty.
function emptiness() {
  if (degraded.size) return `No items for ${name(app.user)}, but parts of the feed were unavailable. New items are announced here.`;
  if (cursor) return 'The newest items are hidden. Load older items to continue.';
  return `No items for ${name(app.user)} yet. New items are announced here.`;
}

function add(item) {
  if (!item.new && !hasOld) {
    hasOld = true;
    $('items').append(h('li', { class: 'divide' }, 'shown before'));
  }
  shown++;
  mix.set(item.source, (mix.get(item.source) || 0) + 1);
  const c = card(item, shown);
  $('items').append(c);
  return c;
}

function card(item, place) {
  const whole = h('li', { class: 'card', 'data-pin': item.pin });
  const panel = h('div', { class: 'why', id: `why-${place}`, hidden: true });
  whole.append(h('article', { 'aria-labelledby': `title-${place}` },
    tile(item, place),
    h('div', { class: 'about' },
      h('h2', { id: `title-${place}`, tabindex: '-1' }, link(item)),
      h('p', { class: 'by' }, h('strong', null, name(item.author)), item.board && ` · ${name(item.board)}`, ' · ',
        h('time', { datetime: item.time, title: new Date(item.time).toLocaleString('en-GB') }, ago(item.time))),
      h('ul', { class: 'tags', 'aria-label': 'Source and interests' },
        h('li', { class: `source ${sourceClass(item.source)}` }, item.source), item.interests.slice(0, 3).map((i) => h('li', null, name(i)))),
      acts(item, panel)),
    panel));
  for (const verb of verbs) if (isAccepted(verb, item.pin)) mark(whole, verb);
  return whole;
}

// tile replaces a picture, which pins do not have: shapes derived from the id.
function tile(item, place) {
  const n = hash(item.pin);
  const t = h('div', { class: 'tile' }, shapes(n), h('span', { class: 'place' }, String(place)), item.new && h('span', { class: 'new' }, 'new'),
    h('span', { class: 'score', title: titleOf(item.score) }, scoreOf(item.score)));
  t.style.setProperty('--hue', n % 360);
  return t;
}

// shapes returns two hills and a sun at positions derived from n.
function shapes(n) {
  const part = (shift, from, to) => from + (((n >>> shift) & 31) / 31) * (to - from);
  const hill = (left, top, right, className) => s('path', { class: className, d: `M0 ${left} Q 60 ${top}, 110 ${(left + right) / 2} T 200 ${right} V 100 H 0 Z` });
  return s('svg', { viewBox: '0 0 200 100', preserveAspectRatio: 'xMidYMid slice', 'aria-hidden': 'true', focusable: 'false' },
    s('circle', { class: 'sun', cx: part(3, 30, 170), cy: part(8, 18, 48), r: part(13, 9, 20) }),
    hill(part(18, 52, 80), part(23, 10, 70), part(5, 50, 84), 'far'),
    hill(part(10, 76, 92), part(15, 50, 98), part(20, 72, 94), 'near'));
}

// link returns an anchor for a web address, and plain text for any other. Following the link is a click.
function link(item) {
  const title = item.title || name(item.pin);
  if (!/^https?:\/\//i.test(item.link)) return title;
  return h('a', { href: item.link, rel: 'noopener noreferrer', target: '_blank', onclick: () => followLink(item) }, title);
}

function acts(item, panel) {
  const title = item.title || name(item.pin);
  return h('div', { class: 'acts', role: 'group', 'aria-label': `Actions of ${name(app.user)}` },
    verbs.map((verb) => restrict(h('button', {
      type: 'button', 'data-verb': verb, 'aria-pressed': 'false', 'aria-label': `${verb} ${title}`, onclick: () => act(verb, item),
    }, verb[0].toUpperCase() + verb.slice(1)), 'events:actions')),
    opener(item.pin, 'Why', panel, { 'aria-label': `why ${title}`, class: 'why-button' }));
}

const actions = new Map(); // actions on this page by user, verb and pin: the event and its state

const keyOf = (verb, pin) => JSON.stringify([app.user, verb, pin]);
const isAccepted = (verb, pin) => actions.get(keyOf(verb, pin))?.state === 'accepted';

// actionOf returns the user's action on a pin. Retries send the same event, with the same id and time.
function actionOf(verb, pin) {
  const key = keyOf(verb, pin);
  if (!actions.has(key)) {
    const event = { stream: 'actions', id: `console/${randomID()}`, time: new Date().toISOString(), actor: app.user, verb, object: pin, surface: 'console' };
    actions.set(key, { key, event, state: '', uncertain: false });
  }
  return actions.get(key);
}

// followLink records a click for each time that the link is followed, if the token permits it. An unconfirmed click is sent again
// instead.
function followLink(item) {
  if (!permits('events:actions')) return;
  const action = actionOf('click', item.pin);
  if (action.state === 'accepted') actions.delete(action.key);
  act('click', item);
}

// act publishes an action of the user, which changes the features within a second. It does not repeat an accepted action or one
// in flight. It repeats an uncertain one with the same id, which counts once.
async function act(verb, item) {
  const action = actionOf(verb, item.pin);
  if (action.state) {
    announce(`${verb} was sent already`);
    return;
  }
  action.state = 'in flight';
  try {
    await publish(action.event);
    action.state = 'accepted';
    clearNotice(action);
    if (action.event.actor === app.user) mark(cardOf(item.pin), verb);
    announce(`${verb} sent`);
  } catch (error) {
    action.state = '';
    report(action, error);
  }
}

// report shows that an action was rejected, or that its outcome is unknown. A rejected event is dropped: the next attempt has a
// new time.
function report(action, error) {
  const { verb } = action.event;
  action.uncertain ||= error.status === 0 || error.status >= 500;
  action.notice = action.uncertain ? `The outcome of ${verb} is unknown: ${error.message}. You can repeat it; it counts once.` : `${verb} was rejected: ${error.message}.`;
  setText($('notice'), action.notice);
  if (!action.uncertain) actions.delete(action.key);
}

// clearNotice removes the notice about an uncertain action.
function clearNotice(action) {
  if ($('notice').textContent === action.notice) setText($('notice'), '');
}

const cardOf = (pin) => [...$('items').children].find((e) => e.dataset.pin === pin);

// mark shows on a card, if any, that an action was accepted.
function mark(whole, verb) {
  if (!whole) return;
  whole.querySelector(`[data-verb=${verb}]`).setAttribute('aria-pressed', 'true');
  if (verb === 'hide') whole.classList.add('hidden-by-user');
}

// randomID has 128 random bits. (crypto.randomUUID exists only on secure origins.)
const randomID = () => [...crypto.getRandomValues(new Uint8Array(16))].map((b) => b.toString(16).padStart(2, '0')).join('');

// start connects the controls of the view. visit makes a visit.
export function start(visit) {
  $('more').addEventListener('click', older);
  for (const id of ['visit', 'fresh']) {
    $(id).addEventListener('click', async () => {
      if (await visit()) $('feed-title').focus();
    });
  }
}
