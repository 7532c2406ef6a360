// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// What the page gains by a script: columns that sort, a filter for long tables, one button for all parts, and links
// that open what they lead to. Without it everything is there and readable.
"use strict";

// A cell's value: what it says it is worth, or its text.
const worth = (row, column) => {
  const cell = row.cells[column];
  return cell.dataset.n === undefined ? cell.textContent : Number(cell.dataset.n);
};

const sortBy = (table, heading) => {
  const column = heading.cellIndex;
  const up = heading.getAttribute("aria-sort") === "descending" ||
    (!heading.hasAttribute("aria-sort") && !heading.classList.contains("number"));
  for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
  heading.setAttribute("aria-sort", up ? "ascending" : "descending");
  const rows = [...table.tBodies[0].rows].map((row) => [worth(row, column), row]);
  rows.sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0) * (up ? 1 : -1));
  table.tBodies[0].append(...rows.map(([, row]) => row));
};

const addFilter = (table) => {
  const tools = document.createElement("div"), input = document.createElement("input");
  const count = document.createElement("output");
  tools.className = "tools";
  input.type = "search";
  input.placeholder = "Filter rows";
  input.setAttribute("aria-label", "Filter the rows of: " + table.caption.textContent);
  input.addEventListener("input", () => {
    const wanted = input.value.toLowerCase();
    let shown = 0;
    for (const row of table.tBodies[0].rows) {
      row.hidden = !row.textContent.toLowerCase().includes(wanted);
      if (!row.hidden) ++shown;
    }
    count.value = wanted ? shown + " of " + table.tBodies[0].rows.length : "";
  });
  tools.append(input, count);
  table.closest(".scroll").before(tools);
};

for (const table of document.querySelectorAll("table")) {
  for (const heading of table.tHead.rows[0].cells) {
    const button = document.createElement("button");
    button.append(...heading.childNodes);
    button.addEventListener("click", () => sortBy(table, heading));
    heading.append(button);
  }
  if (table.tBodies[0].rows.length > 12) addFilter(table);
}

// A row of the table of kernels shows its nodes in the drawing beside it.
for (const row of document.querySelectorAll("tr[data-k]")) {
  const mark = (on) => {
    for (const box of row.closest("details.graph").querySelectorAll("g[data-k='" + row.dataset.k + "']")) {
      box.classList.toggle("on", on);
    }
  };
  row.addEventListener("mouseenter", () => mark(true));
  row.addEventListener("mouseleave", () => mark(false));
}

const openTarget = () => {
  const id = location.hash.slice(1), target = id && document.getElementById(id);
  for (let part = target; part; part = part.parentElement) {
    if (part.tagName === "DETAILS") part.open = true;
  }
  if (target) target.scrollIntoView();
};
addEventListener("hashchange", openTarget);
openTarget();

const everything = document.createElement("li"), all = document.createElement("button");
let open = false;
all.textContent = "Open all";
all.addEventListener("click", () => {
  open = !open;
  for (const part of document.querySelectorAll("details")) part.open = open;
  all.textContent = open ? "Close all" : "Open all";
});
everything.append(all);
document.querySelector("nav ul").append(everything);
