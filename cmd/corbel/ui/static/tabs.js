// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

import { el } from './dom.js';

// tabbed makes tabs, {name: title}, with a panel for each. go is called with the name of the tab that a user wants; select shows a tab, and
// reports whether it is another one than before.
export function tabbed(tabs, { label, prefix = '', go }) {
  const names = Object.keys(tabs), buttons = {}, panels = {};
  let tab = '';
  for (const [name, text] of Object.entries(tabs)) {
    const id = prefix + name;
    buttons[name] = el('button', { type: 'button', role: 'tab', id: `tab-${id}`, 'aria-controls': `panel-${id}`, onclick: () => go(name) }, text);
    panels[name] = el('div', { role: 'tabpanel', id: `panel-${id}`, class: `panel ${name}`, 'aria-labelledby': `tab-${id}`, tabindex: '0', hidden: true });
  }
  const list = el('div', { role: 'tablist', 'aria-label': label, onkeydown: (event) => {
    const at = names.indexOf(tab), to = { ArrowRight: (at + 1) % names.length, ArrowLeft: at - 1, Home: 0, End: -1 }[event.key];
    if (to === undefined) return;
    const name = names.at(to);
    event.preventDefault();
    go(name);
    buttons[name].focus();
  } }, Object.values(buttons));
  return {
    list, panels, get current() { return tab; },
    select(wanted) {
      const name = Object.hasOwn(tabs, wanted) ? wanted : names[0];
      if (tab === name) return false;
      tab = name;
      for (const other of names) {
        buttons[other].setAttribute('aria-selected', other === name);
        buttons[other].tabIndex = other === name ? 0 : -1;
        panels[other].hidden = other !== name;
      }
      return true;
    },
  };
}
