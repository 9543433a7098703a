// DOM helpers. Data from the API is inserted as text, never as markup.

export const $ = (id) => document.getElementById(id);

// h returns a new element. Properties that start with on are listeners. true sets an empty attribute; false, null and undefined
// omit the attribute. Children that are null, undefined or false are omitted.
export function h(tag, properties, ...children) {
  return build(document.createElement(tag), properties, children);
}

// s returns a new SVG element.
export function s(tag, properties, ...children) {
  return build(document.createElementNS('http://www.w3.org/2000/svg', tag), properties, children);
}

function build(e, properties, children) {
  for (const [name, value] of Object.entries(properties || {})) {
    if (name.startsWith('on')) e.addEventListener(name.slice(2), value);
    else if (value === true) e.setAttribute(name, '');
    else if (value !== false && value !== null && value !== undefined) e.setAttribute(name, value);
  }
  e.append(...children.flat().filter((c) => c !== null && c !== undefined && c !== false));
  return e;
}

// announce makes screen readers read a text.
export function announce(text) {
  $('announcer').textContent = text;
}

// setText sets the text of an element, and hides the element if the text is empty.
export function setText(e, text) {
  if (e.textContent !== text) e.textContent = text;
  e.hidden = !text;
}

const shown = new WeakMap(); // element → JSON of the rendered data

// renderIfChanged renders data into an element if the data has changed. Otherwise a selection in it is kept.
export function renderIfChanged(e, data, render) {
  const text = JSON.stringify(data);
  if (shown.get(e) === text) return;
  shown.set(e, text);
  e.replaceChildren(...[render(data)].flat());
}

// updateList makes a list show items in their order. It keeps and updates the element of a known key, with its focus and open
// details.
export function updateList(list, items, keyOf, make, update) {
  const old = new Map([...list.children].map((e) => [e.dataset.key, e]));
  let at = list.firstElementChild;
  for (const item of items) {
    const key = keyOf(item);
    let e = old.get(key);
    old.delete(key);
    if (!e) {
      e = make(item);
      e.dataset.key = key;
    }
    if (update) update(e, item);
    if (e === at) at = at.nextElementSibling;
    else list.insertBefore(e, at);
  }
  for (const e of old.values()) e.remove();
}

// updateText sets the text of an element, and highlights the element briefly if the text has changed.
export function updateText(e, text) {
  if (e.textContent === text) return;
  if (e.textContent) {
    e.classList.remove('changed');
    void e.offsetWidth; // restarts the animation
    e.classList.add('changed');
    setTimeout(() => e.classList.remove('changed'), 1600);
  }
  e.textContent = text;
}

// bar returns a list item with a label, a value, and a bar as background.
export function bar(label, title) {
  return h('li', { class: 'bar-line' }, h('span', { class: 'label', title: title || false }, label), h('span', { class: 'value' }));
}

// setBar sets the value of such an item, and the length of its bar to part, 0 to 1.
export function setBar(line, value, part) {
  updateText(line.querySelector('.value'), value);
  line.style.setProperty('--part', `${Math.round(1000 * Math.min(Math.max(part, 0), 1)) / 10}%`);
}

// table returns a table. Cells are texts or elements. Columns of numbers are right-aligned.
export function table(caption, head, rows, className) {
  const numbers = head.map((_, i) => i > 0 && rows.some((r) => /\d/.test(r[i])) && rows.every((r) => isNumber(r[i])));
  const alignment = (i) => (numbers[i] ? 'number' : false);
  return h('table', { class: className }, h('caption', { class: 'hidden' }, caption),
    h('thead', null, h('tr', null, head.map((t, i) => h('th', { scope: 'col', class: alignment(i) }, t)))),
    h('tbody', null, rows.map((row) => h('tr', null, row.map((c, i) => (i ? h('td', { class: alignment(i) }, c) : h('th', { scope: 'row' }, c)))))));
}

const isNumber = (c) => typeof c === 'string' && /^[\d−–.,%/s +]+$/.test(c);
