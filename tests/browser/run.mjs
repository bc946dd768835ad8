// node run.mjs < job.json > result.json: every check in one Chromium. The job names the pages; the result is plain data.
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { text } from "node:stream/consumers";
import { DESKTOP, PHONE, openAll, start, visit } from "./browser.mjs";
import * as controls from "./controls.mjs";
import { provoke, shape } from "./hostile.mjs";
import { overflow } from "./layout.mjs";
import { print } from "./paper.mjs";
import { withoutScripts } from "./plain.mjs";

const SCHEMES = ["light", "dark"];
const SIZES = { desktop: DESKTOP, phone: PHONE };
const axe = await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** A check's result, or what went wrong in it: one that fails must not take the others with it. */
async function guarded(check) {
  try {
    return await check();
  } catch (error) {
    return { failed: String(error?.message ?? error).split("\n")[0] };
  }
}

/** axe's violations: rule, then each element. */
async function violations(page) {
  const found = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ["violations"] }));
  return found.violations.flatMap((rule) => rule.nodes.map((node) => `${rule.id}: ${node.target.join(" ")}`));
}

/** Closed and open: what axe finds, and how far the page is wider than its window. */
async function look(page) {
  await page.evaluate(axe);
  const result = {};
  for (const folds of ["closed", "open"]) {
    if (folds === "open") await openAll(page);
    result[folds] = { axe: await violations(page), overflow: await overflow(page) };
  }
  return result;
}

async function looks(browser, path) {
  const result = {};
  for (const [size, viewport] of Object.entries(SIZES)) {
    for (const scheme of SCHEMES) {
      result[`${size} ${scheme}`] = await guarded(() => visit(browser, path, { scheme, size: viewport }, look));
    }
  }
  return result;
}

/** What axe finds while a filter, a search without a result and a sorted column are on. */
async function filtered(browser, path) {
  const result = {};
  for (const scheme of SCHEMES) {
    result[scheme] = await guarded(() =>
      visit(browser, path, { scheme }, async (page) => {
        await controls.filterAll(page);
        await page.evaluate(axe);
        return violations(page);
      }),
    );
  }
  return result;
}

async function hostile(browser, pages) {
  const result = {};
  for (const [key, path] of Object.entries(pages)) {
    result[key] = await guarded(() =>
      visit(browser, path, { size: PHONE }, async (page) => {
        const tags = await shape(page);
        return { shape: tags, found: await provoke(page), overflow: await overflow(page) };
      }),
    );
  }
  return result;
}

async function main(job) {
  const browser = await start(job.chromium);
  const { recorded } = job.pages;
  const on = (use, options = {}) => guarded(() => visit(browser, recorded, options, use));
  const result = { version: browser.version(), looks: {}, print: {}, plain: {} };
  const everyCheck = async ([name, path]) => {
    result.looks[name] = await looks(browser, path);
    result.print[name] = await guarded(() => print(browser, path, job.pdf[name]));
    result.plain[name] = await guarded(() => visit(browser, path, { scripts: false }, withoutScripts));
  };
  await Promise.all(Object.entries(job.pages).map(everyCheck)); // each in contexts of its own
  result.sorting = await on(controls.sorting);
  result.sortingOdd = await guarded(() => visit(browser, job.odd, {}, controls.sorting));
  result.everyTable = await on(controls.everyTable);
  result.filtering = await on(controls.filtering);
  result.filteringOnPhone = await on(controls.filtering, { size: PHONE });
  result.filtered = await filtered(browser, recorded);
  result.searching = await on((page) => controls.searching(page, job.words));
  result.combined = await on((page) => controls.combined(page, job.combined.effect, job.combined.word));
  result.copying = await on(controls.copying, { permissions: ["clipboard-read", "clipboard-write"] });
  result.hostile = await hostile(browser, job.hostile);
  await browser.close();
  return result;
}

const result = await main(JSON.parse(await text(process.stdin)));
process.stdout.write(JSON.stringify(result));
