// What is wider than it may be, what is hidden, what links where. Each function of a page answers plain data.

/** Elements and texts that stick out of the page's width, and those cut by an element that scrolls or hides. */
export async function tooWide(page) {
  return page.evaluate(() => {
    const width = document.documentElement.clientWidth;
    const label = (element) => {
      const named = element.closest("[id]");
      return `${named ? `#${named.id} ` : ""}${element.tagName.toLowerCase()}.${element.className}`.trim();
    };
    const found = new Set();
    for (const element of document.body.querySelectorAll("*")) {
      const box = element.getBoundingClientRect();
      if (!element.checkVisibility() || box.width <= 1 || box.height <= 1) continue;
      if (element.ownerSVGElement) continue; // clipped by its picture, which is checked itself
      if (box.left < -1 || box.right > width + 1) found.add(label(element));
      const cuts = getComputedStyle(element).overflowX !== "visible";
      if (cuts && element.scrollWidth > element.clientWidth + 1) found.add(`${label(element)} (cut)`);
    }
    const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    const range = document.createRange();
    while (texts.nextNode()) {
      range.selectNodeContents(texts.currentNode);
      const parent = texts.currentNode.parentElement;
      const sticksOut = [...range.getClientRects()].some((box) => box.width > 1 && (box.left < -1 || box.right > width + 1));
      if (sticksOut && parent.checkVisibility()) found.add(`${label(parent)} (text)`);
    }
    return [...found].sort();
  });
}

/** The document's width against its window's. */
export async function overflow(page) {
  return page.evaluate(() => {
    const { scrollWidth, clientWidth } = document.documentElement;
    const body = document.body.scrollWidth;
    return Math.max(scrollWidth, body) - clientWidth;
  });
}

/** The text of every element that matches and can be seen. */
export async function visibleOf(page, selector) {
  return page.evaluate(
    (wanted) =>
      [...document.querySelectorAll(wanted)]
        .filter((each) => each.checkVisibility({ visibilityProperty: true }) && each.getClientRects().length > 0)
        .map((each) => `${each.tagName.toLowerCase()}: ${each.textContent.trim()}`),
    selector,
  );
}

/** Each `<details>` whose last element is hidden. */
export async function folded(page) {
  return page.evaluate(() =>
    [...document.querySelectorAll("details")]
      .filter((each) => {
        const inside = each.querySelectorAll(":scope > :not(summary), :scope > :not(summary) *");
        return inside.length > 0 && !inside[inside.length - 1].checkVisibility();
      })
      .map((each) => each.querySelector("summary").textContent.trim()),
  );
}
