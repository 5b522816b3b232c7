// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package browser tests the page of corbel ui in a real browser, on a real control plane with the operator of the
// example shop. It is a module of its own, because nothing else needs a client of a browser. The browser is Chromium:
// the program that the variable CHROMIUM names, or the first of chromium, chromium-browser and google-chrome in the
// PATH. Without one the tests are skipped. They share one control plane and one browser.
package browser
