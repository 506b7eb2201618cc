"use strict";
// Sorting and filtering of tables, and the comparison of two models by class. Tables are whole without this.

const cells = (row, column) => row.cells[column].dataset.value ?? row.cells[column].textContent.trim();

function order(one, two) {
  if (one === "" || two === "") return (one === "") - (two === ""); // what has no value comes last
  const difference = Number(one) - Number(two);
  return Number.isNaN(difference) ? one.localeCompare(two) : difference;
}

function sort(table, column, direction) {
  const body = table.tBodies[0];
  const rows = [...body.rows].sort((a, b) => {
    const [one, two] = [cells(a, column), cells(b, column)];
    return one === "" || two === "" ? order(one, two) : direction * order(one, two);
  });
  body.append(...rows);
  for (const heading of table.tHead.rows[0].cells) heading.removeAttribute("aria-sort");
  table.tHead.rows[0].cells[column].setAttribute("aria-sort", direction > 0 ? "ascending" : "descending");
}

for (const table of document.querySelectorAll("table.sortable")) {
  [...table.tHead.rows[0].cells].forEach((heading, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...heading.childNodes);
    heading.append(button);
    button.addEventListener("click", () => {
      const now = heading.getAttribute("aria-sort");
      const first = heading.dataset.first === "descending" ? -1 : 1;
      sort(table, column, now ? (now === "ascending" ? -1 : 1) : first);
    });
  });
}

for (const input of document.querySelectorAll("input[data-filters]")) {
  const rows = () => [...document.getElementById(input.dataset.filters).tBodies[0].rows];
  const count = document.getElementById(input.dataset.filters + "-count");
  input.addEventListener("input", () => {
    const words = input.value.toLowerCase().split(/\s+/);
    for (const row of rows()) row.hidden = !words.every((word) => row.textContent.toLowerCase().includes(word));
    const shown = rows().filter((row) => !row.hidden).length;
    count.textContent = `${shown} of ${rows().length} shown`;
  });
}

const packed = JSON.parse(document.getElementById("packed")?.textContent ?? "null");
if (packed) {
  const [first, second] = ["first-model", "second-model"].map((id) => document.getElementById(id));
  const table = document.getElementById("class-table");
  const say = (text, digits) => text.toFixed(digits).replace("-", "−");
  const bits = Object.fromEntries(
    Object.entries(packed.correct).map(([name, text]) => [name, Uint8Array.from(atob(text), (c) => c.charCodeAt(0))]),
  );
  const bit = (name, row) => (bits[name][row >> 3] >> (row & 7)) & 1;

  const counts = (one, two) => {
    let row = 0;
    return packed.n.map((n, index) => {
      const found = { name: packed.classes[index], n, first: 0, second: 0, onlyFirst: 0, onlySecond: 0 };
      for (const end = row + n; row < end; row++) {
        const [a, b] = [bit(one, row), bit(two, row)];
        found.first += a;
        found.second += b;
        found.onlyFirst += a & ~b;
        found.onlySecond += b & ~a;
      }
      return found;
    });
  };

  const cell = (row, text, value) => {
    const made = row.insertCell();
    made.textContent = text;
    if (value !== undefined) made.dataset.value = value;
    return made;
  };

  const show = () => {
    const found = counts(first.value, second.value);
    const change = (one) => (one.onlyFirst - one.onlySecond) / one.n;
    const discordant = (one) => one.onlyFirst + one.onlySecond;
    found.sort((a, b) => Math.abs(change(b)) - Math.abs(change(a)) || discordant(b) - discordant(a));
    const largest = Math.max(Math.abs(change(found[0])), 0.001);
    const sums = [0, 0, 0];
    const rows = found.map((one) => {
      const row = document.createElement("tr");
      const heading = document.createElement("th");
      heading.scope = "row";
      heading.textContent = one.name;
      row.append(heading);
      const difference = change(one);
      sums[1 - Math.sign(difference)] += 1;
      cell(row, one.n);
      for (const right of [one.first, one.second]) cell(row, say((100 * right) / one.n, 1), right / one.n);
      const bar = document.createElement("span");
      bar.className = "bar";
      const length = document.createElement("i");
      length.style.setProperty("--d", difference / largest);
      length.classList.toggle("behind", difference < 0);
      bar.append(length);
      cell(row, (difference > 0 ? "+" : "") + say(100 * difference, 1) + " ", difference).append(bar);
      cell(row, one.onlyFirst);
      cell(row, one.onlySecond);
      return row;
    });
    table.tBodies[0].replaceChildren(...rows);
    for (const heading of table.tHead.rows[0].cells) heading.removeAttribute("aria-sort");
    for (const [kind, select] of [["first", first], ["second", second]]) {
      for (const place of document.querySelectorAll(`[data-name=${kind}]`)) place.textContent = select.value;
    }
    ["ahead", "equal", "behind"].forEach((kind, index) => {
      document.querySelector(`[data-classes=${kind}]`).textContent = sums[index];
    });
    document.querySelector("input[data-filters=class-table]").dispatchEvent(new Event("input"));
  };
  first.addEventListener("change", show);
  second.addEventListener("change", show);
}
