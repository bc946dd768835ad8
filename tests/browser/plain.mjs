// The page where scripts are off.
import * as c from "./contract.mjs";
import { visibleOf } from "./layout.mjs";

/** What a reader without scripts finds: controls that would do nothing, parts that stay hidden, links that miss. */
export async function withoutScripts(page) {
  const controls = await visibleOf(page, c.CONTROLS);
  const links = await missedLinks(page);
  for (const summary of await page.locator("summary").all()) {
    if (await summary.evaluate((each) => each.checkVisibility() && !each.parentElement.open)) await summary.click();
  }
  return { controls, links, ...(await everything(page)) };
}

/** Opens every fold that an element is in. */
function openFolds(element) {
  for (let fold = element.closest("details"); fold; fold = fold.parentElement.closest("details")) fold.open = true;
}

/** Follows every link within the page: how many there are, those whose target is not in view then, and links elsewhere. */
async function missedLinks(page) {
  const missed = [];
  const outside = [];
  let count = 0;
  const all = await page.locator("a[href]").all();
  for (const link of all) {
    const href = await link.getAttribute("href");
    if (!href.startsWith("#")) {
      outside.push({ href, rel: await link.getAttribute("rel") });
      continue;
    }
    count += 1;
    if (!(await link.isVisible())) await link.evaluate(openFolds);
    await link.click();
    const arrived = () =>
      page.evaluate((id) => {
        const target = document.getElementById(id);
        if (target === null || decodeURIComponent(location.hash) !== `#${id}` || !target.checkVisibility()) return false;
        const box = target.getBoundingClientRect();
        return box.bottom > 0 && box.top < innerHeight;
      }, decodeURIComponent(href.slice(1)));
    let there = false;
    for (let tries = 0; tries < 40 && !(there = await arrived()); tries += 1) await page.waitForTimeout(25);
    if (!there) missed.push(href);
  }
  return { count, missed, outside };
}

/** The number of rows, and the texts that cannot be seen though everything is unfolded. */
async function everything(page) {
  return page.evaluate(
    ({ table, row }) => {
      const hidden = [];
      const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
      while (walker.nextNode()) {
        const { parentElement: parent, data } = walker.currentNode;
        if (!data.trim() || parent.closest("script, style, noscript, template, title, desc")) continue;
        if (!parent.checkVisibility({ visibilityProperty: true, opacityProperty: true })) hidden.push(data.trim());
      }
      return { rows: document.querySelectorAll(`${table} ${row}`).length, hidden };
    },
    { table: c.TABLE, row: c.ROW },
  );
}
