// The shape of a page, to compare one of hostile names with one of harmless names; and every control, to provoke it.
import * as c from "./contract.mjs";
import { openAll } from "./browser.mjs";

/** Every element but `<code>`, with its attributes' names and its classes, in the order of the document. */
export async function shape(page) {
  return page.evaluate(() =>
    [...document.querySelectorAll("*")]
      .filter((each) => each.tagName !== "CODE")
      .map((each) => [each.tagName, ...each.getAttributeNames().sort(), ...each.classList].join(" ")),
  );
}

/** Searches for the first row's own name, presses every button and follows every link within; the rows that the search found. */
export async function provoke(page) {
  await openAll(page);
  const rows = page.locator(`${c.TABLE} ${c.ROW}`);
  await page.locator(c.SEARCH).fill(await rows.first().getAttribute(c.ROW_ID));
  const found = await rows.evaluateAll((all) => all.filter((each) => each.checkVisibility()).length);
  await page.locator(c.SEARCH).fill("");
  await page.evaluate(() => document.querySelectorAll("button, a[href^='#']").forEach((each) => each.click()));
  await page.waitForTimeout(20);
  return found;
}
