// A table whose rows are added and removed while it is shown: cells are updated in place.

import { make, setText } from "./dom.js";

// A column: { name, words (text, to the left), help, sort (row -> value), text (row -> string) or
// show (cell, row), className }.
export class Table {
  constructor(table, columns, { key, onPick, pickable = () => true, sortBy = null, descending = false }) {
    this._head = table.tHead;
    this._body = table.tBodies[0];
    this._columns = columns;
    this._key = key;
    this._onPick = onPick;
    this._pickable = pickable;
    this._sortBy = sortBy;
    this._descending = descending;
    this._rows = new Map();
    this._last = [];
    this._buildHead();
    if (onPick) this._body.addEventListener("keydown", (event) => this._press(event));
  }

  // A table is a single stop of the Tab key; the up and down keys move between rows.
  _press(event) {
    const buttons = [...this._body.querySelectorAll("td:first-child button")];
    const at = buttons.indexOf(document.activeElement);
    const last = buttons.length - 1;
    const next = { ArrowDown: Math.min(last, at + 1), ArrowUp: Math.max(0, at - 1), Home: 0, End: last }[event.key];
    if (at < 0 || next === undefined) return;
    event.preventDefault();
    buttons[next].focus();
    this._rove(buttons[next]);
  }

  // The stop is the row that had the focus, or else the chosen row, or else the first one.
  _rove(wanted) {
    const buttons = [...this._body.querySelectorAll("td:first-child button")];
    this._stop = [wanted, this._stop, this._rows.get(this._current)?.button, buttons[0]].find((each) => buttons.includes(each));
    for (const button of buttons) button.tabIndex = button === this._stop ? 0 : -1;
  }

  _buildHead() {
    const cells = this._columns.map((column) => {
      const cell = make("th", { scope: "col", class: classes(column), title: column.help });
      if (!column.sort) {
        cell.append(column.name);
        return cell;
      }
      const button = make("button", { type: "button" }, column.name);
      button.addEventListener("click", () => this._sortAs(column.name));
      cell.append(button);
      column.cell = cell;
      return cell;
    });
    this._head.replaceChildren(make("tr", {}, ...cells));
    this._showSort();
  }

  _sortAs(name) {
    this._descending = this._sortBy === name ? !this._descending : true;
    this._sortBy = name;
    this._showSort();
    this.update(this._last);
  }

  _showSort() {
    for (const { name, cell } of this._columns) {
      if (!cell) continue;
      if (name === this._sortBy) cell.setAttribute("aria-sort", this._descending ? "descending" : "ascending");
      else cell.removeAttribute("aria-sort");
    }
  }

  _sorted(rows) {
    const column = this._columns.find(({ name }) => name === this._sortBy);
    if (!column) return rows;
    const way = this._descending ? -1 : 1;
    const value = (row) => column.sort(row);
    // Unknown values are last in both orders.
    return [...rows].sort((a, b) => {
      const [one, other] = [value(a), value(b)];
      if (one === null || one === undefined) return other === null || other === undefined ? 0 : 1;
      if (other === null || other === undefined) return -1;
      return (one < other ? -1 : one > other ? 1 : 0) * way;
    });
  }

  update(rows, current = this._current, most = Infinity) {
    this._last = rows;
    this._current = current;
    const sorted = this._sorted(rows).slice(0, most);
    const gone = new Set(this._rows.keys());
    let place = this._body.firstElementChild;
    for (const row of sorted) {
      const key = this._key(row);
      gone.delete(key);
      let line = this._rows.get(key);
      if (!line) this._rows.set(key, (line = this._line(key, row)));
      line.row = row;
      this._fill(line, key === current);
      if (line.element === place) place = place.nextElementSibling;
      else this._body.insertBefore(line.element, place);
    }
    for (const key of gone) {
      this._rows.get(key).element.remove();
      this._rows.delete(key);
    }
    if (this._onPick && this._keys !== [...this._rows.keys()].join()) {
      this._keys = [...this._rows.keys()].join();
      this._rove();
    }
  }

  _line(key, row) {
    const element = make("tr");
    const cells = this._columns.map((column) => make("td", { class: classes(column) }));
    element.append(...cells);
    const line = { element, cells, row };
    if (this._onPick && this._pickable(row)) {
      // The first cell is a button for the keyboard; with the mouse, the whole row can be clicked.
      element.classList.add("pick");
      line.button = make("button", { type: "button" });
      cells[0].append(line.button);
      element.addEventListener("click", () => {
        this._rove(line.button);
        this._onPick(key, line.row);
      });
    }
    return line;
  }

  _fill({ element, cells, row, button }, current) {
    if (current) element.setAttribute("aria-current", "true");
    else element.removeAttribute("aria-current");
    this._columns.forEach((column, index) => {
      const cell = index === 0 && button ? button : cells[index];
      if (column.show) column.show(cell, row, element);
      else setText(cell, column.text(row));
    });
  }
}

function classes({ words, className }) {
  return [words && "words", className].filter(Boolean).join(" ") || null;
}
