"""What pages look like: one sheet for screen, phone, dark rooms and paper, and a few lines of script."""

CSS = """
:root { color-scheme: light dark; --ink: #1d2125; --faint: #5d656d; --paper: #fff; --line: #d9dde1;
  --shade: #f3f5f7; --accent: #9a3b00; --robust: #b8558c; --proposed: #d55e00; --paper-group: #0072b2;
  --simple: #009e73; --yours: #77771f; --warn: #8a5a00; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e8ea; --faint: #a3abb3; --paper: #15181b;
  --line: #363c42; --shade: #1f2429; --accent: #ff9b5e; --robust: #de8fbd; --paper-group: #56b4e9;
  --yours: #bcbc55; --warn: #f0c060; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 82rem; padding: 1.2rem 1rem 3rem; background: var(--paper);
  color: var(--ink); font: 1rem/1.5 system-ui, -apple-system, "Segoe UI", sans-serif; }
h1 { font-size: 1.6rem; line-height: 1.2; margin: .4rem 0; }
h2 { font-size: 1.15rem; margin: 2.2rem 0 .5rem; }
p, li, dd { max-width: 46rem; }
.faint, figcaption, caption { color: var(--faint); }
.short { border-left: 4px solid var(--accent); padding: .1rem 0 .1rem .9rem; margin: 1rem 0; }
.short p { margin: .4rem 0; }
.scroll { overflow-x: auto; border: 1px solid var(--line); border-radius: 6px; }
table { border-collapse: collapse; width: 100%; font-size: .85rem; font-variant-numeric: tabular-nums; }
th, td { padding: .33rem .45rem; text-align: right; white-space: nowrap;
  border-bottom: 1px solid var(--line); }
tbody tr:last-child > * { border-bottom: 0; }
thead th { background: var(--shade); vertical-align: bottom; }
th:first-child { text-align: left; position: sticky; left: 0; background: var(--paper); }
thead th:first-child { background: var(--shade); }
th button { all: unset; cursor: pointer; font-weight: 600; }
th button:focus-visible { outline: 2px solid var(--accent); }
th[aria-sort=ascending] button::after { content: " \\2191"; }
th[aria-sort=descending] button::after { content: " \\2193"; }
td small { color: var(--faint); }
td.best { font-weight: 700; color: var(--accent); }
td.why { white-space: normal; text-align: left; min-width: 16rem; }
table.left td, table.left th { text-align: left; }
.dot { display: inline-block; width: .6rem; height: .6rem; border-radius: 50%; margin-right: .45rem;
  background: var(--c); border: 2px solid var(--c); }
.dot.hollow { background: none; }
.robust { --c: var(--robust); } .proposed { --c: var(--proposed); } .paper { --c: var(--paper-group); }
.simple { --c: var(--simple); } .yours { --c: var(--yours); }
.tag { font-size: .72rem; font-weight: 600; color: var(--warn); border: 1px solid; border-radius: 4px;
  padding: 0 .3rem; margin-left: .4rem; }
.key { display: flex; flex-wrap: wrap; gap: .2rem 1.2rem; font-size: .88rem; margin: .6rem 0; }
.tag.bad { color: var(--faint); }
figure { margin: 0; } figure svg { display: block; width: 100%; min-width: 46rem; height: auto; }
dt { font-weight: 600; margin-top: .7rem; } dd { margin: 0; }
pre { background: var(--shade); padding: .7rem; border-radius: 6px; white-space: pre-wrap;
  overflow-wrap: anywhere; font-size: .85rem; }
@media print { :root { --ink: #000; --paper: #fff; --shade: #eee; --faint: #444; --line: #bbb; }
  body { max-width: none; padding: 0; font-size: 9pt; } table { font-size: 7.5pt; }
  th, td { padding: .15rem .25rem; } .scroll { border: 0; overflow: visible; }
  figure svg { min-width: 0; max-height: 24cm; } h2 { break-after: avoid; }
  tr, dd { break-inside: avoid; } }
"""

#: Sorts a table by the column whose heading is pressed; empty cells stay last either way.
SORT = """
document.querySelectorAll("table.sortable thead button").forEach(function (button) {
  button.addEventListener("click", function () {
    var head = button.closest("th"), row = head.parentNode, column = [].indexOf.call(row.children, head);
    var body = head.closest("table").tBodies[0], rows = [].slice.call(body.rows);
    var first = head.dataset.first, other = first === "ascending" ? "descending" : "ascending";
    var way = head.getAttribute("aria-sort") === first ? other : first;
    [].forEach.call(row.children, function (h) { h.removeAttribute("aria-sort"); });
    head.setAttribute("aria-sort", way);
    rows.sort(function (a, b) {
      var x = a.cells[column].dataset.value, y = b.cells[column].dataset.value;
      if (x === "" || y === "") return (x === "") - (y === "");
      var order = isNaN(x) || isNaN(y) ? x.localeCompare(y) : x - y;
      return way === "ascending" ? order : -order;
    });
    rows.forEach(function (r) { body.appendChild(r); });
  });
});
"""
