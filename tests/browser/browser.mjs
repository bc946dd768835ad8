// Starts Chromium and opens a page of it under watch.
import { pathToFileURL } from "node:url";
import { chromium } from "playwright-core";

const FLAGS = [
  "--headless",
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
  "--font-render-hinting=none",
  "--force-color-profile=srgb",
  // Without these, one picture in four differs by one shade at an edge.
  "--disable-partial-raster",
  "--num-raster-threads=1",
  "--disable-lcd-text",
  "--disable-checker-imaging",
];

export const DESKTOP = { width: 1280, height: 900 };
export const PHONE = { width: 390, height: 844 };

export async function start(executablePath) {
  return chromium.launch({ executablePath, args: FLAGS });
}

/** Runs `use(page, url)` on a fresh page of the file; answers what it answers, and all that the page tried to do. */
export async function visit(browser, path, options, use = async () => undefined) {
  const { scheme = "light", size = DESKTOP, scripts = true, permissions = [], media = null } = options;
  const context = await browser.newContext({
    viewport: size,
    deviceScaleFactor: 1,
    javaScriptEnabled: scripts,
    colorScheme: scheme,
    reducedMotion: "reduce",
    locale: "en-US",
    timezoneId: "UTC",
    permissions,
  });
  const page = await context.newPage();
  const url = pathToFileURL(path).href;
  const seen = watch(context, page, url);
  if (scripts) await page.addInitScript(noteViolations);
  if (media) await page.emulateMedia({ media });
  await page.goto(url, { waitUntil: "load" });
  const result = await use(page, url);
  seen.violations = scripts ? await page.evaluate(() => globalThis.__violations) : [];
  seen.executed = await page.evaluate(() => globalThis.cgauditRan ?? null);
  await context.close();
  return { seen, result };
}

/** What the page asked for, wrote to the console, threw or popped up, besides the file itself being read once. */
function watch(context, page, url) {
  const seen = { read: 0, requests: [], console: [], errors: [], dialogs: [], pages: [], violations: [], executed: null };
  context.on("request", (request) => {
    if (request.url().split("#")[0] === url) seen.read += 1;
    else seen.requests.push(request.url());
  });
  context.on("page", (other) => other !== page && seen.pages.push(other.url()));
  page.on("console", (message) => seen.console.push(`${message.type()}: ${message.text()}`));
  page.on("pageerror", (error) => seen.errors.push(String(error)));
  page.on("dialog", async (dialog) => {
    seen.dialogs.push(dialog.message());
    await dialog.dismiss();
  });
  return seen;
}

function noteViolations() {
  globalThis.__violations = [];
  document.addEventListener("securitypolicyviolation", (event) =>
    globalThis.__violations.push(`${event.violatedDirective}: ${event.blockedURI}`),
  );
}

/** Opens every `<details>`. */
export async function openAll(page) {
  await page.evaluate(() => document.querySelectorAll("details").forEach((each) => (each.open = true)));
}
