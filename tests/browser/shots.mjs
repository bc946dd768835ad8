// node shots.mjs CHROMIUM REPORT OUTDIR: the report as pictures, the same bytes from the same Chromium and fonts.
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { DESKTOP, PHONE, start, visit } from "./browser.mjs";
import { printableWidth } from "./paper.mjs";

const PICTURES = {
  desktop: { size: DESKTOP },
  dark: { size: DESKTOP, scheme: "dark" },
  phone: { size: PHONE },
  print: { media: "print" },
};

// The first pages show how it reads; all of it would be megabytes.
const TALLEST = 5600;

const [chromium, report, folder] = process.argv.slice(2);
await mkdir(folder, { recursive: true });
const browser = await start(chromium);
const paper = await visit(browser, report, { media: "print" }, printableWidth);
PICTURES.print.size = { width: paper.result, height: 1100 };
for (const [name, options] of Object.entries(PICTURES)) {
  await visit(browser, report, options, async (page) => {
    await settled(page);
    const path = join(folder, `${name}.jpg`);
    const { width, height } = await page.evaluate(() => ({ width: innerWidth, height: document.body.scrollHeight }));
    const clip = { x: 0, y: 0, width, height: Math.min(height, TALLEST) };
    const type = { type: "jpeg", quality: 70 };
    await page.screenshot({ path, ...type, fullPage: true, clip, animations: "disabled", caret: "hide", scale: "css" });
    process.stdout.write(`${name}.jpg\n`);
  });
}
await browser.close();

/** Waits until fonts are there and two frames are drawn. */
async function settled(page) {
  await page.evaluate(async () => {
    await document.fonts.ready;
    for (let frame = 0; frame < 2; frame += 1) await new Promise((done) => requestAnimationFrame(done));
  });
}
