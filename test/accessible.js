// A function that returns the accessibility problems of the page as strings.
() => {
  const found = [];
  const where = (e) => {
    const name = e.id ? `#${e.id}` : e.classList.length ? `${e.localName}.${[...e.classList].join('.')}` : e.localName;
    return `${name} “${(e.textContent || '').trim().slice(0, 40)}”`;
  };
  const visible = (e) => e.checkVisibility({ checkOpacity: false, checkVisibilityCSS: true }) && !e.closest('.hidden, .skip');
  const all = (selector) => [...document.querySelectorAll(selector)].filter(visible);

  // Structure: a language, one main, headings that do not skip a level, unique ids.
  if (!document.documentElement.lang) found.push('the page has no language');
  if (all('main').length !== 1) found.push(`${all('main').length} main landmarks`);
  for (const landmark of ['header', 'nav', 'footer']) if (!all(landmark).length) found.push(`no ${landmark}`);
  let level = 0;
  for (const e of all('main :is(h1, h2, h3, h4)')) {
    const next = Number(e.localName[1]);
    if (next > level + 1) found.push(`${where(e)} skips from level ${level}`);
    level = next;
  }
  if (all('main h1').length !== 1) found.push(`${all('main h1').length} headings of the first level`);
  const ids = new Map();
  for (const e of document.querySelectorAll('[id]')) ids.set(e.id, (ids.get(e.id) || 0) + 1);
  for (const [id, n] of ids) if (n > 1) found.push(`${n} elements are #${id}`);
  for (const attribute of ['aria-labelledby', 'aria-controls', 'aria-describedby', 'for', 'list']) {
    for (const e of document.querySelectorAll(`[${attribute}]`)) {
      for (const id of e.getAttribute(attribute).split(/\s+/)) if (!ids.has(id)) found.push(`${where(e)}: ${attribute} refers to the unknown id #${id}`);
    }
  }
  for (const e of document.querySelectorAll('[tabindex]')) if (e.tabIndex > 0) found.push(`${where(e)} has a positive tabindex`);
  // Every pointer control must be a native control in the tab order.
  const controls = 'a[href], button, input, select, textarea, summary, label, option';
  for (const e of all(controls)) if (e.getAttribute('tabindex') === '-1') found.push(`${where(e)} is not in the tab order`);
  for (const e of all('*')) {
    const acts = (window.clicked && window.clicked.has(e)) || e.onclick;
    const role = e.getAttribute('role'), claims = /^(button|link|checkbox|switch|tab|menuitem|option|radio|slider)$/.test(role);
    if (e.matches(controls) || (!acts && !claims)) continue;
    if (acts) found.push(`${where(e)} has a click listener but is not a control`);
    else if (e.tabIndex < 0) found.push(`${where(e)} is a ${role} without keyboard access`);
  }
  for (const t of all('table')) {
    if (!t.caption) found.push(`a table has no caption: ${where(t)}`);
    if (!t.querySelector('th[scope]')) found.push(`a table has no headings: ${where(t)}`);
  }

  // Touch targets must have 24 px, including the space around them. Links within text are exempt.
  for (const e of all('button, select, input, textarea, summary, nav a')) {
    const box = e.getBoundingClientRect();
    if (box.width < 24 || box.height < 24) found.push(`${where(e)} is ${Math.round(box.width)} by ${Math.round(box.height)} pixels`);
  }
  if (document.scrollingElement.scrollWidth > innerWidth) found.push(`the page is ${document.scrollingElement.scrollWidth} pixels wide`);

  // Contrast of text, from the computed styles.
  const canvas = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
  const known = new Map();
  const rgba = (color) => {
    if (!known.has(color)) {
      canvas.clearRect(0, 0, 1, 1);
      canvas.fillStyle = color;
      canvas.fillRect(0, 0, 1, 1);
      const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
      known.set(color, [r, g, b, a / 255]);
    }
    return known.get(color);
  };
  const over = (top, below) => [0, 1, 2].map((i) => top[i] * top[3] + below[i] * (1 - top[3])).concat(1);
  const ground = (e) => {
    const layers = [];
    for (let at = e; at; at = at.parentElement) layers.push(rgba(getComputedStyle(at).backgroundColor));
    return layers.reverse().reduce((below, top) => over(top, below), [255, 255, 255, 1]);
  };
  const opacity = (e) => (e ? Number(getComputedStyle(e).opacity) * opacity(e.parentElement) : 1);
  const light = (c) => {
    const [r, g, b] = c.map((v) => { const s = v / 255; return s <= 0.04045 ? s / 12.92 : ((s + 0.055) / 1.055) ** 2.4; });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ratio = (a, b) => (Math.max(light(a), light(b)) + 0.05) / (Math.min(light(a), light(b)) + 0.05);
  // grounds are the possible backgrounds of a text: background colors, a bar before a line, a mark below a label.
  const grounds = (e) => {
    const svg = e.closest('svg');
    if (svg) {
      const box = e.getBoundingClientRect(), x = (box.left + box.right) / 2, y = (box.top + box.bottom) / 2;
      const behind = [...svg.querySelectorAll('rect')].filter((r) => {
        const b = r.getBoundingClientRect();
        return b.left <= x && x <= b.right && b.top <= y && y <= b.bottom;
      }).at(-1);
      return [behind ? over(rgba(getComputedStyle(behind).fill), ground(svg)) : ground(svg)];
    }
    const line = e.closest('.bar-line');
    const plain = ground(e);
    return line && !e.closest('.why') ? [plain, over(rgba(getComputedStyle(line, '::before').backgroundColor), ground(line))] : [plain];
  };
  const seen = new Set();
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  let checked = 0;
  while (texts.nextNode()) {
    const e = texts.currentNode.parentElement;
    if (seen.has(e) || !texts.currentNode.data.trim() || !visible(e) || e.closest('script, style, noscript, title, option, datalist, :disabled')) continue;
    seen.add(e);
    checked++;
    const style = getComputedStyle(e), size = parseFloat(style.fontSize);
    const wanted = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700) ? 3 : 4.5;
    const color = rgba(e.closest('svg') ? style.fill : style.color), clear = opacity(e);
    for (const behind of grounds(e)) {
      const got = ratio(over([...color.slice(0, 3), color[3] * clear], behind), behind);
      if (got < wanted - 0.01) found.push(`${where(e)}: contrast ${got.toFixed(2)}, want ${wanted}`);
    }
    if (size < 11) found.push(`${where(e)}: letters of ${size} pixels`);
  }
  if (checked < 10) found.push(`only ${checked} texts were found`);
  return found;
}
