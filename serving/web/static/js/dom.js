// Building blocks. Everything shown comes from the API and goes in as text, never as markup.

export const $ = (id) => document.getElementById(id);

// h makes an element; on… properties are listeners, true and false set and leave out an attribute, and children that are
// null or false are left out.
export function h(tag, properties, ...children) {
  return build(document.createElement(tag), properties, children);
}

// s makes an element of SVG.
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

// say has screen readers say something.
export function say(text) {
  $('said').textContent = text;
}

// tell shows a text in an element, and the element only if there is one.
export function tell(e, text) {
  if (e.textContent !== text) e.textContent = text;
  e.hidden = !text;
}

const shown = new WeakMap(); // element → what it was made of

// put renders data into an element, unless that is what is there: a reader's selection stays.
export function put(e, data, render) {
  const text = JSON.stringify(data);
  if (shown.get(e) === text) return;
  shown.set(e, text);
  e.replaceChildren(...[render(data)].flat());
}

// keyed has a list show items, in their order: what was there for a key stays, with its focus and what is open in it, and
// is updated.
export function keyed(list, items, keyOf, make, update) {
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

// change has an element show a text, and marks it for a moment if that is another one.
export function change(e, text) {
  if (e.textContent === text) return;
  if (e.textContent) {
    e.classList.remove('changed');
    void e.offsetWidth; // the mark begins anew
    e.classList.add('changed');
    setTimeout(() => e.classList.remove('changed'), 1600);
  }
  e.textContent = text;
}

// bar makes one line of a list: a label and a value, with a bar behind them.
export function bar(label, title) {
  return h('li', { class: 'bar-line' }, h('span', { class: 'label', title: title || false }, label), h('span', { class: 'value' }));
}

// setBar has such a line show a value; part is the bar's length, 0 to 1.
export function setBar(line, value, part) {
  change(line.querySelector('.value'), value);
  line.style.setProperty('--part', `${Math.round(1000 * Math.min(Math.max(part, 0), 1)) / 10}%`);
}

// table makes a table; cells are texts or elements. A column of numbers stands at the right.
export function table(caption, head, rows, className) {
  const numbers = head.map((_, i) => i > 0 && rows.some((r) => /\d/.test(r[i])) && rows.every((r) => isNumber(r[i])));
  const alignment = (i) => (numbers[i] ? 'number' : false);
  return h('table', { class: className }, h('caption', { class: 'hidden' }, caption),
    h('thead', null, h('tr', null, head.map((t, i) => h('th', { scope: 'col', class: alignment(i) }, t)))),
    h('tbody', null, rows.map((row) => h('tr', null, row.map((c, i) => (i ? h('td', { class: alignment(i) }, c) : h('th', { scope: 'row' }, c)))))));
}

const isNumber = (c) => typeof c === 'string' && /^[\d−–.,%/s +]+$/.test(c);
