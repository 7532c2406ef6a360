// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Uses the page as a reader would and leaves what came of it in attributes of the body; see browser_test.sh.
"use strict";
{
  const seen = document.body.dataset;
  // A window of Chromium's is 500 pixels wide at least; the page's rules are the same at 400.
  const width = innerWidth < 700 ? 400 : document.documentElement.clientWidth;
  document.documentElement.style.width = width + "px";
  const isOut = (part) => !part.closest(".scroll *, svg *, .skip") && part.getBoundingClientRect().right > width + 1;
  const countOut = () => [...document.querySelectorAll("body *")].filter(isOut).length;
  seen.width = width;
  seen.out = countOut();
  seen.title = document.title;
  seen.findingTop = Math.round(document.querySelector("#findings").getBoundingClientRect().top);

  // Everything that can be clicked can be reached by the key Tab, and what scrolls too.
  const reachable = (part) => part.tabIndex >= 0;
  seen.unreachable = [...document.querySelectorAll("a, button, input, summary, .scroll")].filter((p) => !reachable(p)).length;
  seen.unnamed = [...document.querySelectorAll("svg, .scroll, input")].filter((p) => !p.hasAttribute("aria-label")).length;

  // Sorting by the number of nodes, both ways.
  const table = document.querySelector("details.graph table");
  if (table) {
    const button = table.tHead.rows[0].cells[1].querySelector("button");
    const column = () => [...table.tBodies[0].rows].map((row) => Number(row.cells[1].textContent));
    const isSorted = (values, sign) => values.every((value, i) => i === 0 || sign * (value - values[i - 1]) >= 0);
    button.click();
    seen.falling = isSorted(column(), -1);
    button.click();
    seen.rising = isSorted(column(), 1);
  }

  // A filter of the first long table.
  const input = document.querySelector(".tools input");
  if (input) {
    input.value = "model.py:103";
    input.dispatchEvent(new Event("input"));
    seen.filtered = [...input.closest(".tools").nextElementSibling.querySelectorAll("tbody tr")].filter((r) => !r.hidden).length;
    input.value = "";
    input.dispatchEvent(new Event("input"));
  }

  // A link opens what it leads to.
  const calls = document.querySelector("#all-calls");
  seen.wasOpen = calls.open;
  location.hash = "#all-calls";
  dispatchEvent(new Event("hashchange"));
  seen.isOpen = calls.open;

  const all = [...document.querySelectorAll("nav button")].find((button) => button.textContent === "Open all");
  all.click();
  seen.closed = document.querySelectorAll("details:not([open])").length;
  // With all parts open, nothing sticks out of the page.
  seen.openOut = countOut();
  // Boxes of the drawing have their texts inside.
  seen.textsOut = [...document.querySelectorAll("svg.nodes g")].filter((group) => {
    const box = group.querySelector("rect").getBBox();
    return [...group.querySelectorAll("text")].some((text) => {
      const size = text.getBBox();
      return size.x + size.width > box.x + box.width || size.y + size.height > box.y + box.height + 2;
    });
  }).length;
}
