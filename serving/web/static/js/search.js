// The search for users by the start of their ids: suggestions while a person types, and buttons on the page without a user.

import { $, h, setText } from './dom.js';
import { call, query } from './api.js';
import { name, unread } from './format.js';

const most = 20, buttons = 12; // users
const pause = 200; // ms after a key
let searched = 0; // number of searches; answers to earlier ones are dropped
let timer = 0;
let choose = () => {}; // chooses a user

// recentUsers returns the users that were opened before. The browser may block the storage.
function recentUsers() {
  try {
    const list = JSON.parse(localStorage.getItem('users') || '[]');
    return Array.isArray(list) ? list.filter((u) => typeof u === 'string') : [];
  } catch {
    return [];
  }
}

// remember adds a user to the recent ones.
export function remember(user) {
  const list = [user, ...recentUsers().filter((u) => u !== user)].slice(0, most);
  try { localStorage.setItem('users', JSON.stringify(list)); } catch { /* the storage is blocked */ }
}

// search suggests the users whose ids start with the typed text, recent ones first.
export async function search() {
  const mine = ++searched, typed = $('user').value.trim(), prefix = `user:${typed.replace(/^user:/, '')}`;
  let found = [], problem = '';
  try {
    found = (await call(`/v1/users${query({ prefix, limit: most })}`)).users;
  } catch (error) {
    problem = unread('the users', error);
  }
  if (mine !== searched) return;
  const all = [...new Set([...recentUsers().filter((u) => u.startsWith(prefix)), ...found])];
  $('users').replaceChildren(...all.map((u) => h('option', { value: u })));
  $('suggested').replaceChildren(...all.slice(0, buttons).map((u) => h('button', { type: 'button', onclick: () => choose(u) }, name(u))));
  setText($('suggest-status'), problem || (all.length ? '' : `No user starts with “${typed}”.`));
}

// start connects the field.
export function start(chooseUser) {
  choose = chooseUser;
  $('user').addEventListener('input', () => {
    clearTimeout(timer);
    timer = setTimeout(search, pause);
  });
}
