"use strict";
// Sorting: numbers by the first number of a text, empty ones last either way; equal ones stay as they are.
const number = (text) => {
  const match = text.replaceAll(",", "").match(/[-+]?\d+(\.\d+)?/);
  return match ? Number(match[0]) : NaN;
};
const compare = (a, b, numeric, sign) => {
  if (!numeric) return sign * a.localeCompare(b, "en");
  const [x, y] = [number(a), number(b)];
  if (Number.isNaN(x) || Number.isNaN(y)) return Number.isNaN(x) - Number.isNaN(y);
  return sign * (x - y);
};
const key = (row, column) => row.cells[column].dataset.value ?? row.cells[column].textContent;
for (const table of document.querySelectorAll(".ranking")) {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => head.firstElementChild.addEventListener("click", (event) => {
    const sign = head.ariaSort === "ascending" ? -1 : 1;
    const numeric = event.currentTarget.dataset.kind === "number";
    for (const cell of heads) cell.ariaSort = "none";
    head.ariaSort = sign > 0 ? "ascending" : "descending";
    const rows = [...table.tBodies[0].rows];
    rows.sort((a, b) => compare(key(a, column), key(b, column), numeric, sign));
    table.tBodies[0].append(...rows);
  }));
}
for (const board of document.querySelectorAll(".board")) {
  const [words, first, count] = [".filter", ".first-tier", ".count"].map((name) => board.querySelector(name));
  const rows = [...board.querySelectorAll(".ranking tbody tr")];
  const filter = () => {
    const wanted = words.value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const row of rows) {
      const text = row.dataset.words.toLowerCase();
      row.hidden = !wanted.every((word) => text.includes(word)) || (first?.checked && row.dataset.tier !== "1");
    }
    count.textContent = `${rows.filter((row) => !row.hidden).length} of ${rows.length}`;
  };
  words.addEventListener("input", filter);
  first?.addEventListener("change", filter);
}
// The theme is the system's until the reader says otherwise; a browser may refuse to remember.
const root = document.documentElement;
const theme = document.getElementById("theme");
const isDark = () => (root.dataset.theme ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
const say = () => { theme.ariaPressed = String(isDark()); };
try { const kept = localStorage.getItem("oodbench-theme"); if (kept) root.dataset.theme = kept; } catch { /* not kept */ }
theme.addEventListener("click", () => {
  root.dataset.theme = isDark() ? "light" : "dark";
  try { localStorage.setItem("oodbench-theme", root.dataset.theme); } catch { /* not kept */ }
  say();
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", say);
say();
// Explanations: the titles of drawn points, taken over from the browser, which shows them late and never on touch.
const tip = document.getElementById("tip");
const explanation = (element) => {
  const title = element.querySelector?.(":scope > title");
  if (title) { element.dataset.tip = title.textContent; title.remove(); }
  return element.closest?.("[data-tip]")?.dataset.tip;
};
const show = (event) => {
  const text = explanation(event.target);
  tip.hidden = !text;
  if (!text) return;
  tip.textContent = text;
  const [x, y] = [event.clientX + 14, event.clientY + 14];
  tip.style.left = `${Math.max(4, Math.min(x, innerWidth - tip.offsetWidth - 4))}px`;
  tip.style.top = `${y + tip.offsetHeight > innerHeight ? event.clientY - tip.offsetHeight - 8 : y}px`;
};
document.addEventListener("pointerover", show);
document.addEventListener("pointerdown", show);
document.addEventListener("keydown", (event) => { if (event.key === "Escape") tip.hidden = true; });
document.addEventListener("scroll", () => { tip.hidden = true; }, true);
