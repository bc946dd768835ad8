"use strict";
// Copying, sorting, filtering and search. Everything can be read without it.
(() => {
  const make = (tag, properties, ...children) => {
    const element = Object.assign(document.createElement(tag), properties);
    element.append(...children);
    return element;
  };

  const copier = (className, label, says, text, failed) => {
    const button = make("button", { className, type: "button", textContent: says });
    button.setAttribute("aria-label", label);
    button.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(text());
        button.textContent = "copied";
      } catch {
        button.textContent = failed;
      }
      setTimeout(() => { button.textContent = says; }, 1500);
    });
    return button;
  };

  const copyCommand = (block) => {
    const command = block.textContent.trim();
    block.append(copier("copy", `Copy ${command}`, "Copy", () => command, "select it"));
  };

  const copyLink = (heading) => {
    const title = heading.textContent.trim().replace(/\s+/g, " ");
    const link = () => `${location.href.split("#")[0]}#${heading.id}`;
    const button = copier("copy-link", `Copy the link to ${title}`, "#", link, "in the address bar");
    button.addEventListener("click", () => history.replaceState(null, "", `#${heading.id}`));
    heading.append(" ", button);
  };

  const valueOf = (row, column) => {
    const cell = row.cells[column];
    const raw = cell.dataset.value ?? cell.textContent.trim();
    const number = Number(raw);
    return raw === "" || Number.isNaN(number) ? raw : number;
  };
  const compare = (a, b) => {
    if (typeof a === "number" && typeof b === "number") return a - b;
    if (typeof a === "number" || typeof b === "number") return typeof a === "number" ? -1 : 1;
    return a < b ? -1 : a > b ? 1 : 0;
  };

  const sortable = (table) => {
    const headers = [...table.tHead.rows[0].cells];
    headers.forEach((header, column) => {
      const button = make("button", { className: "sort", type: "button" }, ...header.childNodes);
      header.append(button);
      button.addEventListener("click", () => {
        const down = header.getAttribute("aria-sort") === "ascending";
        headers.forEach((other) => other.removeAttribute("aria-sort"));
        header.setAttribute("aria-sort", down ? "descending" : "ascending");
        const rows = [...table.tBodies[0].rows].map((row) => [valueOf(row, column), row]);
        rows.sort(([a], [b]) => (down ? -compare(a, b) : compare(a, b)));
        table.tBodies[0].append(...rows.map(([, row]) => row));
      });
    });
  };

  const searchable = (table) => {
    const rows = [...table.tBodies[0].rows];
    const chosen = new Set();
    const search = make("input", { id: "search", type: "search", placeholder: "Search by name" });
    search.setAttribute("aria-label", "Search workloads by namespace or name");
    const shown = make("output", { id: "shown" });
    shown.setAttribute("aria-live", "polite");
    const apply = () => {
      const wanted = search.value.trim().toLowerCase();
      let count = 0;
      for (const row of rows) {
        const has = row.dataset.effect.split(" ").some((effect) => chosen.has(effect));
        row.hidden = !(row.dataset.workload.toLowerCase().includes(wanted) && (chosen.size === 0 || has));
        count += row.hidden ? 0 : 1;
      }
      shown.textContent = count ? `${count} of ${rows.length} shown` : `Nothing found: 0 of ${rows.length} shown`;
    };
    const tools = make("div", { className: "tools" }, search);
    const effects = new Set(rows.flatMap((row) => row.dataset.effect.split(" ")));
    for (const effect of ["stops", "may-stop", "loses", "unknown", "moves", "gains", "nominal"].filter((each) => effects.has(each))) {
      const chip = make("button", { className: "chip", type: "button", textContent: effect });
      chip.dataset.filter = effect;
      chip.setAttribute("aria-pressed", "false");
      chip.addEventListener("click", () => {
        if (!chosen.delete(effect)) chosen.add(effect);
        chip.setAttribute("aria-pressed", String(chosen.has(effect)));
        apply();
      });
      tools.append(chip);
    }
    tools.append(shown);
    table.parentElement.before(tools);
    search.addEventListener("input", apply);
    apply();
  };

  const named = (hash) => document.getElementById(hash) ?? document.getElementById(decodeURIComponent(hash));
  const reveal = () => {
    const target = named(location.hash.slice(1));
    for (let each = target; each; each = each.parentElement) if (each.tagName === "DETAILS") each.open = true;
    target?.scrollIntoView();
  };

  document.querySelectorAll("h2[id], h3[id]").forEach(copyLink);
  document.querySelectorAll("pre.run").forEach(copyCommand);
  const ticket = document.getElementById("markdown");
  const copy = copier("copy", "Copy as Markdown", "Copy as Markdown", () => ticket.textContent, "see As Markdown");
  document.querySelector(".meta").append(make("li", {}, copy));
  document.querySelectorAll("table.sortable").forEach(sortable);
  const table = document.getElementById("workloads-table");
  if (table) searchable(table);
  window.addEventListener("hashchange", reveal);
  if (location.hash) reveal();
})();
