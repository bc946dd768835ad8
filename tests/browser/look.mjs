// node look.mjs < job.json > result.json: the pages in one Chromium, as data: heights, axe, overflow, paper, no scripts, hostile names.
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { text } from "node:stream/consumers";
import { openAll, start, visit } from "./browser.mjs";
import { provoke, shape } from "./hostile.mjs";
import { folded, overflow, tooWide, visibleOf } from "./layout.mjs";
import { withoutScripts } from "./plain.mjs";

const require = createRequire(import.meta.url);
const axe = await readFile(require.resolve("axe-core/axe.min.js"), "utf8");
const DESKTOP = { width: 1280, height: 800 };
const PHONE = { width: 390, height: 844 };
const job = JSON.parse(await text(process.stdin));
const browser = await start(job.chromium);

async function violations(page) {
  await page.evaluate(axe);
  const found = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ["violations"] }));
  return found.violations.flatMap((rule) => rule.nodes.map((node) => `${rule.id}: ${node.target.join(" ")}`));
}

/** Height and overflow, closed and open; what axe finds with all of it open; what is on the first screen. */
async function look(page) {
  const height = () => page.evaluate(() => document.documentElement.scrollHeight);
  const result = { height: await height(), overflow: await overflow(page) };
  result.first = await page.evaluate(() =>
    ["h1", ".meta", ".chips", ".action pre", ".action .bar", "#affected"].filter((wanted) => {
      const box = document.querySelector(wanted)?.getBoundingClientRect();
      return box && box.height > 0 && box.bottom <= innerHeight;
    }),
  );
  result.axeClosed = await violations(page);
  await openAll(page);
  return { ...result, heightOpen: await height(), overflowOpen: await overflow(page), axe: await violations(page) };
}

/** The page's copy buttons: what each puts on the clipboard. */
async function copied(page) {
  const found = {};
  for (const button of await page.locator("button.copy").all()) {
    if (!(await button.isVisible())) continue;
    await button.click();
    found[await button.getAttribute("aria-label")] = await page.evaluate(() => navigator.clipboard.readText());
  }
  return found;
}

/** Each column of the workloads' table after a press, and the rows that a search and a filter leave. */
async function controls(page) {
  await openAll(page);
  const rows = () =>
    page.locator("#workloads-table tbody tr").evaluateAll((all) => all.filter((each) => !each.hidden).map((each) => each.dataset.workload));
  const result = { before: await rows(), columns: {} };
  for (const button of await page.locator("#workloads-table thead button").all()) {
    await button.click();
    result.columns[await button.textContent()] = await rows();
  }
  await page.locator("#search").fill("SHOP/");
  result.searched = await rows();
  await page.locator("button[data-filter=loses]").click();
  result.filtered = await rows();
  result.shown = await page.locator("#shown").textContent();
  return result;
}

const result = { looks: {}, plain: {}, print: {}, hostile: {} };
for (const [name, path] of Object.entries(job.pages)) {
  for (const [size, viewport] of Object.entries({ desktop: DESKTOP, phone: PHONE })) {
    for (const scheme of ["light", "dark"]) {
      result.looks[`${name} ${size} ${scheme}`] = await visit(browser, path, { scheme, size: viewport }, look);
    }
  }
  result.plain[name] = await visit(browser, path, { scripts: false }, withoutScripts);
  result.print[name] = await visit(browser, path, { media: "print", size: { width: 702, height: 1100 } }, async (page) => ({
    wide: await tooWide(page),
    folded: await folded(page),
    controls: await visibleOf(page, "button:not(.sort), input, output"),
  }));
}
const granted = { size: DESKTOP, permissions: ["clipboard-read", "clipboard-write"] };
result.copied = await visit(browser, job.pages.recorded, granted, copied);
result.controls = await visit(browser, job.pages.recorded, { size: DESKTOP }, controls);
for (const [key, path] of Object.entries(job.hostile)) {
  result.hostile[key] = await visit(browser, path, { size: PHONE }, async (page) => {
    const tags = await shape(page);
    return { shape: tags, found: await provoke(page), overflow: await overflow(page) };
  });
}
await browser.close();
process.stdout.write(JSON.stringify(result));
