// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// The site of the documents: `make site` copies this folder and docs/ into bin/site-src, and builds there.

import { readdirSync, readFileSync, existsSync } from 'node:fs'
import { join } from 'node:path'
import { defineConfig } from 'vitepress'
import { writeKinds } from './kinds.js'

const repository = 'https://github.com/corbel-run/corbel'
const version = process.env.VERSION || 'main'
const versions = (process.env.VERSIONS || version).split(' ').filter(Boolean)
const docs = 'docs'

writeKinds((process.env.CRDS || '').split(' ').filter(Boolean), join(docs, 'reference', 'kinds'))

// titleOf returns the first heading of a page.
const titleOf = file => readFileSync(file, 'utf8').match(/^# (.*)$/m)?.[1].replaceAll('`', '') ?? file

// pages returns the entries of the sidebar for the pages of a folder.
const pages = folder => readdirSync(join(docs, folder)).filter(name => name.endsWith('.md') && name !== 'README.md').sort()
  .map(name => ({ text: titleOf(join(docs, folder, name)), link: '/' + join(folder, name.slice(0, -3)) }))

// section returns a group of the sidebar; folders that do not exist have none.
const section = (text, folder, items = pages(folder)) => {
  const link = existsSync(join(docs, folder, 'README.md')) ? '/' + join(folder, '/') : undefined
  return { text, link, collapsed: true, items }
}

const inRoot = pages('')
const isGuide = page => page.link.startsWith('/howto-')
const titles = { reconcilers: 'Other reconcilers', evidence: 'Evidence', contributing: 'Contributing' }

export default defineConfig({
  title: 'Corbel',
  description: 'Kubernetes operators from Helm charts, kustomizations, manifests and Go.',
  srcDir: docs,
  outDir: 'dist',
  base: (process.env.BASE || '/') + version + '/',
  rewrites: { 'README.md': 'index.md', ':folder/README.md': ':folder/index.md', ':folder/:sub/README.md': ':folder/:sub/index.md' },
  // Relative links to pages that do not exist fail the build; a site that is not published yet has no other host than localhost.
  ignoreDeadLinks: 'localhostLinks',
  lastUpdated: false,
  themeConfig: {
    search: { provider: 'local' },
    socialLinks: [{ icon: 'github', link: repository }],
    outline: [2, 3],
    nav: [{ text: version, items: versions.map(v => ({ text: v, link: (process.env.BASE || '/') + v + '/', target: '_self', noIcon: true })) }],
    sidebar: [
      { text: 'Start', items: [{ text: titleOf(join(docs, 'README.md')), link: '/' }, ...inRoot.filter(page => !isGuide(page))] },
      { text: 'Guides', collapsed: false, items: inRoot.filter(isGuide) },
      ...Object.entries(titles).filter(([folder]) => existsSync(join(docs, folder))).map(([folder, text]) => section(text, folder)),
      section('Reference', 'reference', [...pages('reference'), { text: 'Kinds of the examples', collapsed: true, items: pages('reference/kinds') }]),
    ],
  },
  markdown: {
    languageAlias: { gotemplate: 'go' },
    config: md => {
      // Braces of a template begin no expression of Vue.
      for (const rule of ['text', 'code_inline']) {
        const render = md.renderer.rules[rule]
        md.renderer.rules[rule] = (...args) => render(...args).replaceAll('{{', '&#123;&#123;')
      }
      md.core.ruler.push('links-to-the-repository', state => {
        // A file of docs/ is a page or a picture; each other file is shown by the repository.
        const folder = join(state.env.relativePath, '..')
        for (const token of state.tokens.flatMap(token => [token, ...(token.children ?? [])])) {
          const href = token.type === 'link_open' ? token.attrGet('href') : null
          if (!href || /^([a-z]+:|#|\/)/.test(href)) continue
          const [path, anchor] = href.split('#')
          const target = join(docs, folder, path)
          if (target.startsWith('..') || !target.startsWith(docs + '/') || !target.endsWith('.md')) {
            token.attrSet('href', `${repository}/blob/${version}/${join('docs', folder, path)}${anchor ? '#' + anchor : ''}`)
          }
        }
      })
    },
  },
  vite: { publicDir: false },
})
