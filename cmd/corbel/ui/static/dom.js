// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// What builds elements. Texts of the cluster only become text nodes and values of attributes that are not code, so that
// nothing in them is ever markup.

// el makes an element: el('p', {class: 'note', onclick: f}, 'text', child). Children may be lists. Properties and children
// that are null, undefined or false are left out.
export function el(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [key, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith('on')) element.addEventListener(key.slice(2), value);
    else element.setAttribute(key, value === true ? '' : value);
  }
  element.append(...children.flat(Infinity).filter((child) => child || child === 0));
  return element;
}

// Tones are how states are coloured; each has an icon of its own, so that colour alone says nothing.
const tones = {
  good: ['Ready', 'Completed', 'Running', 'Succeeded'],
  bad: ['Error', 'Failed', 'Missing'],
  idle: ['Suspended', 'Released', 'Remote', 'Forbidden', 'Unknown', 'Superseded', ''],
  gone: ['gone', 'Deleting', 'DeletionPending', 'Terminating'],
};
const shapes = {
  good: 'M5 8.3l2.1 2.1L11 6.2', bad: 'M5.8 5.8l4.4 4.4M10.2 5.8l-4.4 4.4', busy: 'M8 4.8V8l2.2 1.6', idle: 'M6.4 5.8v4.4M9.6 5.8v4.4', gone: 'M5.2 8h5.6',
};

export const toneOf = (state) => Object.keys(tones).find((tone) => tones[tone].includes(state ?? '')) ?? 'busy';

// icon draws a tone: a circle with a mark in it.
export function icon(tone) {
  const svg = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
  for (const [name, value] of [['viewBox', '0 0 16 16'], ['class', 'icon'], ['data-tone', tone], ['aria-hidden', 'true']]) svg.setAttribute(name, value);
  for (const d of ['M8 1.6a6.4 6.4 0 1 0 0 12.8a6.4 6.4 0 1 0 0-12.8', shapes[tone]]) {
    const path = document.createElementNS(svg.namespaceURI, 'path');
    path.setAttribute('d', d);
    svg.append(path);
  }
  return svg;
}

// duration is written as the command writes it: 90s, 5m30s, 3h.
export function duration(seconds) {
  const s = Math.max(0, Math.round(seconds)), m = Math.floor(s / 60), h = Math.floor(m / 60), d = Math.floor(h / 24);
  const two = (value, unit, rest, small) => `${value}${unit}${rest ? rest + small : ''}`;
  if (s < 120) return `${s}s`;
  if (m < 10) return two(m, 'm', s % 60, 's');
  if (h < 3) return `${m}m`;
  if (h < 8) return two(h, 'h', m % 60, 'm');
  return h < 48 ? `${h}h` : two(d, 'd', d < 8 ? h % 24 : 0, 'h');
}

// ago is an element that says how long ago something was, and goes on doing so.
export function ago(at, suffix = ' ago') {
  const then = Date.parse(at ?? '');
  if (Number.isNaN(then)) return '';
  return tick(el('time', { datetime: new Date(then).toISOString(), title: new Date(then).toLocaleString(), 'data-suffix': suffix }));
}

function tick(element) {
  const text = duration((Date.now() - Date.parse(element.dateTime)) / 1000) + element.dataset.suffix;
  if (element.textContent !== text) element.textContent = text;
  return element;
}
setInterval(() => document.querySelectorAll('time').forEach(tick), 1000);

// replace puts other children into an element, and keeps the focus on what has the same data-key.
export const replace = (root, ...children) => drawn(root, () => root.replaceChildren(...children.flat(Infinity).filter(Boolean)));

function drawn(root, draw) {
  const key = root.contains(document.activeElement) ? document.activeElement.dataset.key : undefined;
  draw();
  if (key && !root.contains(document.activeElement)) root.querySelector(`[data-key="${CSS.escape(key)}"]`)?.focus({ preventScroll: true });
}

// update does so, too, but what is as before stays in its place: the click on an element that goes while the button is down is lost.
export const update = (root, ...children) => drawn(root, () => {
  const old = new Set(root.children);
  const next = children.flat(Infinity).filter(Boolean).map((child) => [...old].find((one) => one.isEqualNode(child) && old.delete(one)) ?? child);
  for (const one of old) one.remove();
  next.forEach((child, i) => { if (root.children[i] !== child) root.insertBefore(child, root.children[i]); });
});

// announce lets a screen reader say a sentence.
export const announce = (text) => { document.getElementById('announcer').textContent = text; };

// title names a component as the command does: Shop market/corner.
export const title = (c) => `${c.kind} ${c.namespace ? c.namespace + '/' : ''}${c.name}`;

// code shows text as it is written.
export const code = (label, text) => el('pre', { tabindex: '0', 'data-key': label, role: 'group', 'aria-label': label }, text);

// soon calls a function a moment after it is asked to, once for all that ask meanwhile.
export function soon(run) {
  let timer;
  return () => { timer ??= setTimeout(() => { timer = undefined; run(); }, 400); };
}

// frame calls a function once in the next frame, however often it is asked to.
export function frame(draw) {
  let asked = false;
  return () => {
    if (asked) return;
    asked = true;
    requestAnimationFrame(() => { asked = false; draw(); });
  };
}
