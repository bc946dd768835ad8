// What the tests take for granted of the page. Names that change there change here, and nowhere else.
export const TABLE = "#workloads-table";
export const SORTABLE_TABLES = "table.sortable";
export const SORT_BUTTON = "thead th button";
export const ROW = "tbody tr[data-workload]";
export const ROW_ID = "data-workload";
export const ROW_EFFECT = "data-effect";
export const SEARCH = "input#search";
export const CHIP = "button[data-filter]";
export const CHIP_EFFECT = "data-filter";
export const CHIP_ALL = "all"; // a chip of this name, if there is one, takes every filter away
export const SHOWN = "#shown";
export const NOTHING_SHOWN = /\b(no|none|nothing|0)\b/i;
export const HEADINGS = "h2[id], h3[id]";
export const COPY_LINK = "button.copy-link";
export const LAST_ROW = "#containers ~ * tr, #containers tr"; // the last of these is the page's last container
export const CONTROLS = "button, input, select, textarea, [role=button], [role=searchbox], [contenteditable], [onclick]";
export const NOT_ON_PAPER = [SEARCH, CHIP, COPY_LINK, SHOWN].join(", ");
