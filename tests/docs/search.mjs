// The search of the built site, outside a browser: `search.mjs FOLDER` reads a list of queries as JSON from stdin, and
// prints for each the names of the pages that the site shows, best first.

import { readFileSync } from "node:fs";
import { runInThisContext } from "node:vm";

const folder = process.argv[2];
globalThis.document = { getElementById: () => null, createElement: () => ({}), addEventListener: () => {} };
globalThis.window = globalThis;
globalThis._ = (text) => text;
globalThis._ready = () => {};
globalThis._removeChildren = () => {};
globalThis.SPHINX_HIGHLIGHT_ENABLED = false;
globalThis.DOCUMENTATION_OPTIONS = {};
const scripts = ["base-stemmer", "english-stemmer", "language_data", "searchtools"].map((name) => `_static/${name}.js`);
const source = [...scripts, "searchindex.js"].map((name) => readFileSync(`${folder}/${name}`, "utf-8")).join("\n;\n");
const search = runInThisContext(`${source}\n;Search`);
const found = JSON.parse(readFileSync(0, "utf-8")).map((query) => {
  const results = search._performSearch(...search._parseQuery(query)).reverse();
  return [...new Set(results.map((result) => result[0]))];
});
process.stdout.write(JSON.stringify(found));
