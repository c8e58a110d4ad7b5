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
  const heat = board.querySelector(".heat");
  const groups = [...(heat?.tBodies ?? [])].map((body) => ({
    head: body.querySelector(".group"),
    button: body.querySelector("button"),
    rows: [...body.querySelectorAll("tr[data-words]")],
  }));
  const parts = (input) => input.value.toLowerCase().split(/\s+/).filter(Boolean);
  const filter = () => {
    const wanted = parts(words);
    const fits = (row) => wanted.every((word) => row.dataset.words.toLowerCase().includes(word))
      && (!first?.checked || row.dataset.tier === "1");
    for (const row of rows) row.hidden = !fits(row);
    count.textContent = `${rows.filter((row) => !row.hidden).length} of ${rows.length}`;
    for (const group of groups) { // of a folded group its first row that fits stays, which is the best
      const fitting = group.rows.filter(fits);
      const shown = new Set(group.button?.ariaExpanded === "false" ? fitting.slice(0, 1) : fitting);
      for (const row of group.rows) row.hidden = !shown.has(row);
      if (group.head) group.head.hidden = !fitting.length;
    }
  };
  words.addEventListener("input", filter);
  first?.addEventListener("change", filter);
  const fold = board.querySelector(".fold");
  const setFold = (group, folded) => { if (group.button) group.button.ariaExpanded = String(!folded); };
  for (const group of groups) group.button?.addEventListener("click", () => {
    setFold(group, group.button.ariaExpanded === "true");
    fold.ariaPressed = String(groups.every((one) => one.button.ariaExpanded === "false"));
    filter();
  });
  fold?.addEventListener("click", () => {
    fold.ariaPressed = String(fold.ariaPressed !== "true");
    for (const group of groups) setFold(group, fold.ariaPressed === "true");
    filter();
  });
  board.querySelector(".environments")?.addEventListener("input", (event) => {
    const wanted = parts(event.currentTarget);
    const names = [...heat.tHead.rows[0].cells].map((cell) => cell.textContent.toLowerCase());
    const hidden = names.map((name, place) => place > 0 && wanted.length > 0 && !wanted.some((word) => name.includes(word)));
    for (const row of [heat.tHead.rows[0], ...groups.flatMap((group) => group.rows)]) {
      hidden.forEach((hide, place) => { row.cells[place].hidden = hide; });
    }
  });
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
