// The console: whose feed, which view, and what is asked for again while it is looked at.

import { $, h, tell } from './dom.js';
import { askAgain, call, onUnknown } from './api.js';
import { name } from './format.js';
import { app } from './app.js';
import * as feed from './feed.js';
import * as rail from './rail.js';
import * as pools from './pools.js';
import * as features from './features.js';
import * as interests from './interests.js';
import * as pipeline from './pipeline.js';
import * as insights from './insights.js';

const every = 1000; // ms between looks at what changes by itself, while the page is visible
const demoUsers = ['user:ada', 'user:emil', 'user:grace', 'user:nils', 'user:pablo'];

// The views by their name, which is that of their section and of the fragment of the page's address. user: it is about
// one. look asks anew; open is called before a view is shown.
const views = {
  feed: { user: true, look: rail.look },
  pools: { user: true, look: pools.look },
  features: { user: true, look: features.look },
  interests: { look: interests.look, open: interests.open },
  pipeline: { look: () => {}, open: pipeline.open }, // it shows the status, which is looked at in any case
  insights: { look: insights.look, open: insights.open },
};

const view = () => (Object.hasOwn(views, location.hash.slice(1)) ? location.hash.slice(1) : 'feed');

// ---- views

// show has the page show the view that its address names; who came by a link is brought to its heading.
function show(focus) {
  const now = view();
  for (const other of Object.keys(views)) $(`view-${other}`).hidden = other !== now || (views[other].user && !app.user);
  for (const a of document.querySelectorAll('nav a')) {
    if (a.hash === `#${now}`) a.setAttribute('aria-current', 'page');
    else a.removeAttribute('aria-current');
  }
  $('suggest').hidden = !views[now].user || Boolean(app.user);
  document.title = [views[now].user && app.user && name(app.user), now, 'smartfeed console'].filter(Boolean).join(' · ');
  if (views[now].open) views[now].open();
  if (focus) {
    (document.querySelector(`#view-${now}:not([hidden]) h1`) || $('main')).focus();
    window.scrollTo(0, 0);
  }
}

// ---- who

// choose looks at a user's feed.
async function choose(user, feedName) {
  app.visit++;
  askAgain();
  offer(feedName);
  app.user = user;
  app.feed = feedName;
  app.known = false;
  $('user').value = user;
  $('name').value = feedName;
  for (const v of [feed, rail, pools, features, interests]) v.leave();
  tell($('notice'), '');
  show(false);
  if (user) await visit();
}

async function visit() {
  const user = app.user, answered = await feed.visit();
  if (user !== app.user) return false;
  if (answered || app.known) feed.follow(); // a new stream says at once what waits; one that goes on says only what changes
  if (!answered) return false;
  app.known = true;
  remember(user);
  look();
  return true;
}

// go chooses, and puts it into the page's address.
function go(user, feedName) {
  history.pushState(null, '', `?${new URLSearchParams({ user, feed: feedName })}${location.hash || '#feed'}`);
  return choose(user, feedName);
}

// lookedAt are the users of before; a browser may not let a page remember.
function lookedAt() {
  try {
    const list = JSON.parse(localStorage.getItem('users') || '[]');
    return Array.isArray(list) ? list.filter((u) => typeof u === 'string') : [];
  } catch {
    return [];
  }
}

function remember(user) {
  const list = [user, ...lookedAt().filter((u) => u !== user)].slice(0, 20);
  try { localStorage.setItem('users', JSON.stringify(list)); } catch { /* then it does not */ }
  suggest();
}

function suggest() {
  const all = [...new Set([...lookedAt(), ...demoUsers])];
  $('users').replaceChildren(...all.map((u) => h('option', { value: u })));
  $('suggested').replaceChildren(...all.slice(0, 8).map((u) => h('button', { type: 'button', onclick: async () => {
    await go(u, app.feed);
    $('feed-title').focus();
  } }, name(u))));
}

// ---- what changes by itself

let looking = false; // one round at a time: a slow server is not asked twice

// look refreshes what is shown. What fails stays as it was until the next round.
async function look() {
  if (looking || document.hidden) return;
  looking = true;
  try {
    const now = views[view()];
    const rounds = [call('/v1/status').then(showStatus, missStatus)];
    if (app.known || !now.user) rounds.push(now.look());
    await Promise.all(rounds);
  } catch (error) {
    state(error.message, false);
  } finally {
    looking = false;
  }
}

// offer lets a feed be chosen.
function offer(feedName) {
  if (![...$('name').options].some((o) => o.value === feedName)) $('name').append(h('option', { value: feedName }, feedName));
}

function showStatus(status) {
  for (const s of status.shares || []) offer(s.feed);
  state(status.ready ? 'ready' : status.missing.join('; '), status.ready);
  tell($('version'), `smartfeed ${status.version}`);
  if (view() === 'pipeline') pipeline.look(status);
}

function missStatus(error) {
  if (view() === 'pipeline') pipeline.away(error);
  throw error;
}

function state(text, good) {
  tell($('state-text'), text); // it is announced when it changes
  $('state').firstElementChild.className = `dot ${good ? 'good' : 'bad'}`;
}

const live = () => $('live').getAttribute('aria-pressed') === 'true';

async function keepLooking() {
  if (live()) await look();
  setTimeout(keepLooking, every);
}

// ---- who asks

// question asks the person for a token; detail is what the API said.
function question(detail) {
  tell($('ask-why'), detail);
  $('token').value = '';
  $('ask').returnValue = '';
  $('ask').showModal();
  return new Promise((answered) => {
    $('ask').addEventListener('close', () => answered($('ask').returnValue === 'use' ? $('token').value.trim() : null), { once: true });
  });
}

// ---- start

function start() {
  $('who').addEventListener('submit', async (event) => {
    event.preventDefault();
    const typed = $('user').value.trim();
    await go(typed.includes(':') ? typed : `user:${typed}`, $('name').value);
    if (view() === 'feed') $('feed-title').focus();
  });
  $('name').addEventListener('change', () => { if (app.user) go(app.user, $('name').value); });
  $('live').addEventListener('click', () => $('live').setAttribute('aria-pressed', String(!live())));
  $('theme').value = document.documentElement.dataset.theme || 'auto';
  $('theme').addEventListener('change', chooseTheme);
  document.querySelector('.skip').addEventListener('click', (event) => {
    event.preventDefault(); // the address names the view
    $('main').focus();
  });
  window.addEventListener('popstate', fromAddress);
  window.addEventListener('hashchange', () => { show(true); look(); });
  onUnknown(question);
  for (const v of [pipeline, features, interests, insights]) v.start();
  feed.start(visit);
  suggest();
  choose(...addressed());
  keepLooking();
}

// addressed are the user and the feed that the page's address names.
function addressed() {
  const query = new URLSearchParams(location.search);
  return [query.get('user') || '', query.get('feed') || 'home'];
}

function fromAddress() {
  const [user, feedName] = addressed();
  if (user !== app.user || feedName !== app.feed) choose(user, feedName);
}

function chooseTheme() {
  const theme = $('theme').value;
  if (theme === 'auto') delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  try { localStorage.setItem('theme', theme); } catch { /* then it is chosen again */ }
}

start();
