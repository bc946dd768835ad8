// The page on A4.
import { writeFile } from "node:fs/promises";
import * as c from "./contract.mjs";
import { openAll, visit } from "./browser.mjs";
import { folded, tooWide, visibleOf } from "./layout.mjs";

const A4 = 793; // CSS pixels across 210 mm
const CHROMIUMS_MARGIN = "0.4in";

/** The width in CSS pixels between the margins of an A4 sheet: the page's own `@page` margins, or Chromium's. */
export async function printableWidth(page) {
  return page.evaluate(
    ({ paper, usual }) => {
      const rules = (list) => [...list].flatMap((rule) => [rule, ...(rule.cssRules ? rules(rule.cssRules) : [])]);
      const own = [...document.styleSheets].flatMap((sheet) => rules(sheet.cssRules)).find((rule) => rule instanceof CSSPageRule && rule.style.margin);
      const probe = document.body.appendChild(document.createElement("div"));
      probe.style.cssText = "position: absolute";
      probe.style.margin = own ? own.style.margin : usual;
      const { marginLeft, marginRight } = getComputedStyle(probe);
      probe.remove();
      return Math.floor(paper - parseFloat(marginLeft) - parseFloat(marginRight));
    },
    { paper: A4, usual: CHROMIUMS_MARGIN },
  );
}

const countPages = (bytes) => bytes.toString("latin1").match(/\/Type\s*\/Page(?![\w])/g)?.length ?? 0;

/** Lays the page out for print, and prints it to `target`. */
export async function print(browser, path, target) {
  return visit(browser, path, {}, async (page) => {
    const options = { format: "A4", preferCSSPageSize: true, printBackground: true };
    const bytes = await page.pdf(options);
    await writeFile(target, bytes);
    const width = await printableWidth(page);
    await page.emulateMedia({ media: "print" });
    await page.setViewportSize({ width, height: 1100 });
    const found = {
      pages: countPages(bytes),
      width,
      wide: await tooWide(page),
      folded: await folded(page),
      controls: await visibleOf(page, c.NOT_ON_PAPER),
      lastRow: await lastRow(page),
    };
    await page.emulateMedia({ media: null });
    await openAll(page);
    found.pagesOfAllOpen = countPages(await page.pdf(options));
    return found;
  });
}

/** The cells of the last container's row, as far as they can be seen. */
async function lastRow(page) {
  return page.evaluate((selector) => {
    const row = [...document.querySelectorAll(selector)].at(-1);
    return [...(row?.children ?? [])].filter((cell) => cell.checkVisibility() && cell.getBoundingClientRect().height > 1).map((cell) => cell.innerText.trim());
  }, c.LAST_ROW);
}
