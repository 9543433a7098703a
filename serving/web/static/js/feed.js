// A feed as its user sees it.

import { $, h, s, say, tell } from './dom.js';
import { call, listen, ofUser, publish, query } from './api.js';
import { ago, count, hash, name, sourceClass, without } from './format.js';
import { app, current } from './app.js';
import { opener } from './why.js';

const pageSize = 24; // items of a page: fills rows of two, three and four cards
const verbs = ['save', 'click', 'hide']; // what can be done with an item

let cursor = null; // of the next older page
let shown = 0; // items on the page
let frozen = false; // an item that was shown before is on the page
let lacking = new Set(); // what the visit and the pages below it were answered without
let mix = new Map(); // items on the page by source
let stop = () => {}; // ends the stream of counts

// visit takes new items and shows them on top of what was shown before. It returns whether there was an answer.
export async function visit() {
  app.visit++;
  const matters = current();
  $('fresh').hidden = true;
  try {
    const page = await call(ofUser(app.user, `feed${query({ limit: pageSize, feed: app.feed })}`));
    if (!matters()) return false;
    clear();
    show(page);
    announce(page);
    return true;
  } catch (error) {
    if (matters()) tell($('notice'), `The feed of ${app.user} could not be read: ${error.message}.`);
    return false;
  }
}

function announce(page) {
  const fresh = page.items.filter((i) => i.new).length;
  say(`${count(page.items.length, 'item', 'items')}, ${fresh} of them new`);
}

// leave takes what belongs to the user before off the page.
export function leave() {
  stop();
  stop = () => {};
  clear();
  $('feed-title').textContent = app.user ? `${name(app.user)}’s feed` : 'Feed';
  $('mix').textContent = '';
  for (const id of ['fresh', 'more', 'end', 'empty', 'degraded']) $(id).hidden = true;
}

// follow announces new items from now on.
export function follow() {
  stop();
  stop = listen(ofUser(app.user, 'feed/events'), (event, data) => { if (event === 'new') announceNew(data.count); });
}

function announceNew(waiting) {
  $('fresh').textContent = waiting >= 100 ? '100 or more new items' : count(waiting, 'new item', 'new items');
  $('fresh').hidden = waiting === 0;
}

function clear() {
  $('items').replaceChildren();
  shown = 0;
  frozen = false;
  lacking = new Set();
  mix = new Map();
}

async function older() {
  const unseen = current(), from = cursor;
  const matters = () => unseen() && cursor === from; // a visit under way may end before, and has a page of its own
  $('more').disabled = true; // one page at a time
  try {
    const page = await call(ofUser(app.user, `feed${query({ limit: pageSize, cursor })}`));
    if (!matters()) return;
    const first = show(page);
    if (first) first.querySelector('h2').focus();
    say(`${count(page.items.length, 'older item', 'older items')}`);
  } catch (error) {
    if (matters()) tell($('notice'), `Older items could not be read: ${error.message}.`);
  } finally {
    $('more').disabled = false;
  }
}

// show appends a page and returns its first card.
function show(page) {
  cursor = page.next;
  const cards = page.items.map(add);
  tell($('notice'), '');
  for (const what of page.degraded) lacking.add(what);
  tell($('degraded'), without([...lacking]));
  $('more').hidden = !cursor;
  $('end').hidden = Boolean(cursor) || shown === 0;
  $('mix').textContent = [...mix].sort((a, b) => b[1] - a[1]).map(([source, n]) => `${n} ${source}`).join(' · ');
  tell($('empty'), shown ? '' : emptiness());
  return cards[0];
}

// emptiness says why there is no item: that there is none is said only by a page that lacks nothing and has none after it.
function emptiness() {
  if (lacking.size) return `Nothing was found for ${name(app.user)}, and not everything could be asked. What arrives is announced here.`;
  if (cursor) return 'Of the newest items none may be seen any more. Older ones may.';
  return `Nothing waits for ${name(app.user)}, and nothing was shown before. What arrives is announced here.`;
}

function add(item) {
  if (!item.new && !frozen) {
    frozen = true;
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
  for (const verb of verbs) if (isTaken(verb, item.pin)) mark(whole, verb);
  return whole;
}

// tile stands for the picture that a pin does not have: shapes from its id.
function tile(item, place) {
  const n = hash(item.pin);
  const t = h('div', { class: 'tile' }, shapes(n), h('span', { class: 'place' }, String(place)), item.new && h('span', { class: 'new' }, 'new'),
    h('span', { class: 'score', title: 'The score that the generator gave it' }, item.score.toFixed(2)));
  t.style.setProperty('--hue', n % 360);
  return t;
}

// shapes are two hills and a sun, or a moon, somewhere.
function shapes(n) {
  const part = (shift, from, to) => from + (((n >>> shift) & 31) / 31) * (to - from);
  const hill = (left, top, right, className) => s('path', { class: className, d: `M0 ${left} Q 60 ${top}, 110 ${(left + right) / 2} T 200 ${right} V 100 H 0 Z` });
  return s('svg', { viewBox: '0 0 200 100', preserveAspectRatio: 'xMidYMid slice', 'aria-hidden': 'true', focusable: 'false' },
    s('circle', { class: 'sun', cx: part(3, 30, 170), cy: part(8, 18, 48), r: part(13, 9, 20) }),
    hill(part(18, 52, 80), part(23, 10, 70), part(5, 50, 84), 'far'),
    hill(part(10, 76, 92), part(15, 50, 98), part(20, 72, 94), 'near'));
}

// link makes an anchor of an address of the web, and plain text of any other. Following it is a click.
function link(item) {
  const title = item.title || name(item.pin);
  if (!/^https?:\/\//i.test(item.link)) return title;
  return h('a', { href: item.link, rel: 'noopener noreferrer', target: '_blank', onclick: () => followLink(item) }, title);
}

function acts(item, panel) {
  const title = item.title || name(item.pin);
  return h('div', { class: 'acts', role: 'group', 'aria-label': `What ${name(app.user)} does with it` },
    verbs.map((verb) => h('button', {
      type: 'button', 'data-verb': verb, 'aria-pressed': 'false', 'aria-label': `${verb} ${title}`, onclick: () => act(verb, item),
    }, verb[0].toUpperCase() + verb.slice(1))),
    opener(item.pin, 'Why', panel, { 'aria-label': `why ${title}`, class: 'ask' }));
}

const deeds = new Map(); // what was done at this page, by user, verb and pin: the event, and how far it is

const keyOf = (verb, pin) => JSON.stringify([app.user, verb, pin]);
const isTaken = (verb, pin) => deeds.get(keyOf(verb, pin))?.state === 'taken';

// deedOf is what the user does with a pin. It is one event, with one id and one time, however often it has to be sent.
function deedOf(verb, pin) {
  const key = keyOf(verb, pin);
  if (!deeds.has(key)) {
    const event = { stream: 'actions', id: eventID(), time: new Date().toISOString(), actor: app.user, verb, object: pin, surface: 'console' };
    deeds.set(key, { key, event, state: '', doubtful: false });
  }
  return deeds.get(key);
}

// followLink is a click for each time that the link is followed; one that is not known to have come is not another.
function followLink(item) {
  const deed = deedOf('click', item.pin);
  if (deed.state === 'taken') deeds.delete(deed.key);
  act('click', item);
}

// act publishes an action of the user; it is in the live features within a second. What is taken or under way is not sent
// again, and what may have come is sent again as it was: events with one id count once.
async function act(verb, item) {
  const deed = deedOf(verb, item.pin);
  if (deed.state) {
    say(`${verb} was sent already`);
    return;
  }
  deed.state = 'under way';
  try {
    await publish(deed.event);
    deed.state = 'taken';
    settle(deed);
    if (deed.event.actor === app.user) mark(cardOf(item.pin), verb);
    say(`${verb} sent`);
  } catch (error) {
    deed.state = '';
    doubt(deed, error);
  }
}

// doubt says that an action was not taken, or that this is not certain. An event that is known not to have come is
// forgotten: the next one is of its own time.
function doubt(deed, error) {
  const { verb } = deed.event;
  deed.doubtful ||= error.status === 0 || error.status >= 500;
  deed.said = deed.doubtful ? `It is not certain whether ${verb} was taken: ${error.message}. Pressed again it counts once.` : `${verb} was not taken: ${error.message}.`;
  tell($('notice'), deed.said);
  if (!deed.doubtful) deeds.delete(deed.key);
}

// settle takes away what was said of an action while it was in doubt.
function settle(deed) {
  if ($('notice').textContent === deed.said) tell($('notice'), '');
}

const cardOf = (pin) => [...$('items').children].find((e) => e.dataset.pin === pin);

// mark shows on a card, if there is one, that an action was taken.
function mark(whole, verb) {
  if (!whole) return;
  whole.querySelector(`[data-verb=${verb}]`).setAttribute('aria-pressed', 'true');
  if (verb === 'hide') whole.classList.add('gone');
}

// eventID is 128 random bits. (crypto.randomUUID is there on secure origins only.)
function eventID() {
  return `console/${[...crypto.getRandomValues(new Uint8Array(16))].map((b) => b.toString(16).padStart(2, '0')).join('')}`;
}

// start has the view's controls work; again visits anew.
export function start(again) {
  $('more').addEventListener('click', older);
  $('fresh').addEventListener('click', async () => {
    if (await again()) $('feed-title').focus();
  });
}
