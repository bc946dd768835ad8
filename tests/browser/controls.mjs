// Sorting, filtering, search and copied links, as a reader does them.
import * as c from "./contract.mjs";
import { openAll } from "./browser.mjs";

/** The workloads' ids in the order shown; hidden rows left out. */
async function shown(page) {
  return page.evaluate(
    ({ table, row, id }) =>
      [...document.querySelectorAll(`${table} ${row}`)].filter((each) => each.checkVisibility()).map((each) => each.getAttribute(id)),
    { table: c.TABLE, row: c.ROW, id: c.ROW_ID },
  );
}

async function state(page) {
  const text = await page.locator(c.SHOWN).innerText();
  return {
    rows: await shown(page),
    count: Number(text.match(/\d+/)?.[0] ?? (c.NOTHING_SHOWN.test(text) ? 0 : NaN)),
    saysNothing: c.NOTHING_SHOWN.test(text),
    text,
  };
}

/** `aria-sort` of each header of a table, by what the header says. */
async function directions(table) {
  return table.locator("thead th").evaluateAll((all) =>
    Object.fromEntries(
      all.flatMap((th) => {
        const sort = th.getAttribute("aria-sort");
        return sort && sort !== "none" ? [[th.textContent.trim(), sort]] : [];
      }),
    ),
  );
}

/** Presses each header of the workloads table twice, the second time with the keyboard: the order after each press. */
export async function sorting(page) {
  const table = page.locator(c.TABLE);
  const result = { before: await shown(page), effects: await effects(page), columns: [] };
  const buttons = await table.locator(c.SORT_BUTTON).count();
  for (let index = 0; index < buttons; index += 1) {
    const button = table.locator(c.SORT_BUTTON).nth(index);
    const presses = [];
    for (const press of [() => button.click(), () => button.press("Enter")]) {
      await press();
      presses.push({ sorted: await directions(table), rows: await shown(page) });
    }
    result.columns.push(presses);
  }
  return result;
}

async function effects(page) {
  return page.evaluate(
    ({ table, row, id, effect }) =>
      Object.fromEntries([...document.querySelectorAll(`${table} ${row}`)].map((each) => [each.getAttribute(id), each.getAttribute(effect)])),
    { table: c.TABLE, row: c.ROW, id: c.ROW_ID, effect: c.ROW_EFFECT },
  );
}

/** Presses every header of every table that sorts: how many columns there are, and those that lost or mixed up a row. */
export async function everyTable(page) {
  await openAll(page);
  const result = [];
  for (const table of await page.locator(c.SORTABLE_TABLES).all()) {
    const texts = () => table.locator("tbody tr").evaluateAll((all) => all.map((each) => each.textContent));
    const before = (await texts()).sort();
    const wrong = [];
    const buttons = await table.locator(c.SORT_BUTTON).count();
    for (let index = 0; index < buttons; index += 1) {
      const said = [];
      for (let press = 0; press < 2; press += 1) {
        await table.locator(c.SORT_BUTTON).nth(index).click();
        said.push(...Object.values(await directions(table)));
        if (JSON.stringify((await texts()).sort()) !== JSON.stringify(before)) wrong.push(`column ${index}: rows differ`);
      }
      if (said.sort().join() !== "ascending,descending") wrong.push(`column ${index}: aria-sort ${said.join()}`);
    }
    result.push({ table: await table.locator("xpath=ancestor::section[1]").getAttribute("aria-labelledby"), columns: buttons, wrong });
  }
  return result;
}

async function pressed(page) {
  return page
    .locator(c.CHIP)
    .evaluateAll((all, name) => all.filter((each) => each.getAttribute("aria-pressed") === "true").map((each) => each.getAttribute(name)), c.CHIP_EFFECT);
}

/** Takes every filter and the search away. */
async function reset(page) {
  await page.locator(c.SEARCH).fill("");
  const all = page.locator(`${c.CHIP}[${c.CHIP_EFFECT}="${c.CHIP_ALL}"]`);
  if (await all.count()) return all.click();
  for (const effect of await pressed(page)) await page.locator(`${c.CHIP}[${c.CHIP_EFFECT}="${effect}"]`).click();
}

/** Presses each chip alone, then all of them one after the other: the chips that are pressed, and the rows. */
export async function filtering(page) {
  const look = async () => ({ pressed: await pressed(page), ...(await state(page)) });
  const names = await page.locator(c.CHIP).evaluateAll((all, name) => all.map((each) => each.getAttribute(name)), c.CHIP_EFFECT);
  const chips = names.filter((name) => name !== c.CHIP_ALL);
  const result = { chips, first: await look(), alone: {}, together: [] };
  for (const chip of chips) {
    await page.locator(`${c.CHIP}[${c.CHIP_EFFECT}="${chip}"]`).click();
    result.alone[chip] = await look();
    await reset(page);
  }
  for (const chip of chips) {
    await page.locator(`${c.CHIP}[${c.CHIP_EFFECT}="${chip}"]`).click();
    result.together.push(await look());
  }
  await reset(page);
  result.last = await look();
  result.live = await page
    .locator(c.SHOWN)
    .evaluate((each) => each.closest("[role=status], [aria-live=polite], output") !== null);
  return result;
}

/** With one chip pressed and a search that finds nothing: for axe to look at. */
export async function filterAll(page) {
  await page.locator(c.CHIP).first().click();
  await page.locator(c.TABLE).locator(c.SORT_BUTTON).first().click();
  await page.locator(c.SEARCH).fill("no such workload");
}

/** Types each of the words into the search box: the rows that stay. */
export async function searching(page, words) {
  const result = {};
  for (const word of words) {
    await page.locator(c.SEARCH).fill("");
    await page.locator(c.SEARCH).pressSequentially(word);
    result[word] = await state(page);
  }
  await reset(page);
  result[""] = await state(page);
  return result;
}

/** Filters by an effect, searches for a word and sorts by the first header, in this order. */
export async function combined(page, effect, word) {
  await page.locator(`${c.CHIP}[${c.CHIP_EFFECT}="${effect}"]`).click();
  await page.locator(c.SEARCH).fill(word);
  const filtered = await state(page);
  const button = page.locator(c.TABLE).locator(c.SORT_BUTTON).first();
  const sorted = {};
  for (let press = 0; press < 2; press += 1) {
    await button.click();
    sorted[Object.values(await directions(page.locator(c.TABLE)))[0]] = (await state(page)).rows;
  }
  await reset(page);
  return { filtered, sorted, reset: (await state(page)).rows.length };
}

/** Presses every copy-link button: what is on the clipboard then, and in the address. */
export async function copying(page, url) {
  await openAll(page);
  const result = [];
  for (const heading of await page.locator(c.HEADINGS).all()) {
    const id = await heading.getAttribute("id");
    const found = await heading.evaluateHandle(
      (each, wanted) => each.querySelector(wanted) ?? (each.nextElementSibling?.matches(wanted) ? each.nextElementSibling : null),
      c.COPY_LINK,
    );
    const button = found.asElement();
    if (button === null) {
      result.push({ id, copied: "no button" });
      continue;
    }
    await page.evaluate(() => navigator.clipboard.writeText("nothing was copied"));
    await button.click();
    let copied = "";
    for (let tries = 0; tries < 40; tries += 1) {
      copied = await page.evaluate(() => navigator.clipboard.readText());
      if (copied !== "nothing was copied") break;
      await page.waitForTimeout(25);
    }
    result.push({ id, copied: copied === `${url}#${id}` ? "right" : copied, address: decodeURIComponent(new URL(page.url()).hash) });
  }
  return result;
}
