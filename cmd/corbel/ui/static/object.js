// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// A dependent that is open, or a pod of one: the live object, how it differs from its manifest and who changed it, its events, and its log.

import { get, post } from './api.js';
import { ago, code, el, icon, replace, soon, toneOf } from './dom.js';
import { changesTable, eventsPanel, failure, note, reading, table, told } from './panels.js';
import { tabbed } from './tabs.js';
import { podList } from './tree.js';

export const objectTabs = { live: 'Live', difference: 'Difference', events: 'Events', log: 'Log' };

// openObject draws the object with a key. go is called with a tab and, of the log, a container that a user wants to see.
export function openObject(component, key, { title, go, back }) {
  const [, kind, namespace, name] = key.split('/');
  const head = el('div', { class: 'about' }), view = tabbed(objectTabs, { label: 'About the object', prefix: 'object-', go });
  const root = el('div', { class: 'view' },
    el('header', { class: 'component' }, el('button', { type: 'button', class: 'quiet up', onclick: back }, `‹ ${title}`),
      el('h2', { tabindex: '-1', id: 'object-heading' }, `${kind} ${namespace ? namespace + '/' : ''}${name}`), head, view.list),
    Object.values(view.panels));
  const read = async () => {
    const object = await get('object', component, { object: key }), tone = toneOf(object.state);
    replace(head, el('p', { class: 'status' }, el('span', { class: 'pill', 'data-tone': tone }, icon(tone), object.state), el('span', { class: 'dim' }, object.apiVersion)),
      object.message && el('p', {}, el('bdi', { class: 'message' }, object.message)));
    return object;
  };
  const { live, difference, events, log } = view.panels;
  const readEvents = eventsPanel(events, component, { object: key });
  const readers = {
    live: reading(live, read, ({ yaml }) => [yaml ? code('Live object', yaml) : el('p', { class: 'empty' }, 'There is no live object to show.')]),
    difference: differencePanel(difference, component, key, read),
    events: () => { read().catch(() => {}); return readEvents(); },
    log: logPanel(log, component, key, read, go),
  };
  let container;
  const readShown = () => readers[view.current]?.(container);
  const timer = setInterval(() => { // a log that is shown goes on
    if (!root.isConnected) clearInterval(timer);
    else if (view.current === 'log' && !document.hidden) readShown();
  }, 5000);
  return {
    root, key, readShown, readLater: soon(readShown),
    select(tab, wanted) {
      const isOther = wanted !== container;
      container = wanted;
      if (view.select(tab) || isOther) readShown();
    },
  };
}

// differencePanel shows which clients changed the object and, by a button, what its manifest says: only the operator has that.
function differencePanel(root, component, key, read) {
  const changed = el('div'), result = told('Manifest');
  const ask = el('button', { type: 'button', onclick: async () => {
    ask.disabled = true;
    replace(result, el('p', { class: 'empty' }, 'The operator renders the manifest…'));
    replace(result, await post('manifest', component, {}, { object: key }).then(({ file, yaml, hidden, changes }) => [
      el('h3', {}, changes.length ? 'The operator would change the live object' : 'The operator would change nothing of it'), changesTable(component, changes),
      el('h3', {}, yaml ? `Manifest${file ? ' of ' + file : ''}` : 'The operator does not render it'),
      hidden && note('idle', 'The operator does not tell values of objects in other namespaces or clusters.'), yaml && code('Manifest', yaml),
    ]).catch((error) => [failure(error)]));
    ask.disabled = false;
    result.focus();
  } }, 'Compare with the manifest');
  root.append(changed, el('div', { class: 'buttons' }, ask), el('p', { class: 'dim' }, 'The operator is asked by an annotation of the component. Its answer is a Secret, which it deletes ten minutes later.'), result);
  return reading(changed, read, ({ changes }) => [changes?.length
    ? table('Changes by other clients', ['Field', 'Value', 'Set by', 'When'], changes.flatMap(({ manager, at, fields }) => fields.map(({ path, value }) => [
      el('code', {}, path), el('bdi', {}, value || '(removed)'), el('bdi', {}, manager), ago(at)])))
    : el('p', { class: 'empty' }, 'No other client has set a field of it.')]);
}

// logPanel shows the end of the log of a container, and goes on reading it. What is shown stays if that fails.
function logPanel(root, component, key, read, go) {
  const chips = el('div', { class: 'chips', role: 'group', 'aria-label': 'Container' }), said = el('div'), text = code('Log', '');
  const previous = el('input', { type: 'checkbox', onchange: () => again(chosen) });
  let chosen, drawn;
  root.append(el('div', { class: 'tools' }, chips, el('label', {}, previous, 'Before its last start')), text, said);
  async function again(container) {
    chosen = container;
    try {
      const object = await read(), containers = object.containers ?? [];
      const shown = container ?? containers[0];
      replace(chips, containers.map((each) => el('button', { type: 'button', class: 'chip', 'data-key': each, 'aria-pressed': String(each === shown), onclick: () => go('log', each) }, each)));
      text.hidden = !containers.length;
      if (!containers.length) return replace(said, podList(object, component) || el('p', { class: 'empty' }, 'It has no pods, and so no log.'));
      if (drawn !== (drawn = `${shown} ${previous.checked}`)) text.textContent = ''; // that of another container does not stay
      const answer = await get('log', component, { object: key, container: shown, previous: previous.checked && 'true' });
      if (chosen !== container) return;
      const isAtEnd = root.scrollHeight - root.scrollTop - root.clientHeight < 40;
      if (text.textContent !== answer.text) text.textContent = answer.text;
      if (isAtEnd) root.scrollTop = root.scrollHeight;
      replace(said, el('p', { class: 'dim' }, answer.text ? `The last ${answer.lines} lines at most, read ` : 'The log is empty, read ', ago(new Date().toISOString())));
    } catch (error) { if (said.textContent !== error.message) replace(said, failure(error)); }
  }
  return again;
}
