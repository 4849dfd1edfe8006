import type { ComponentChildren } from "preact";
import { Scroll } from "./scroll.tsx";

/** A column. The first one names the row. */
export interface Column<T> {
  readonly title: string;
  /** True aligns figures to the right. */
  readonly figure?: boolean;
  readonly class?: string | ((row: T) => string);
  readonly cell: (row: T) => ComponentChildren;
}

interface Props<T> {
  label: string;
  columns: readonly Column<T>[];
  rows: readonly T[];
  keyOf: (row: T) => string;
  /** Called when a row is clicked. The first cell needs a button that does the same, for the keyboard. */
  open?: (row: T) => void;
  isOpen?: (row: T) => boolean;
  isOff?: (row: T) => boolean;
  /** Whether the titles of the columns stay in view, on a screen that is wide enough for the table. */
  isSticky?: boolean;
}

/** A table. On a narrow screen each row is a card with the titles of the columns beside the values. */
export function DataTable<T>({ label, columns, rows, keyOf, open, isOpen, isOff, isSticky = false }: Props<T>) {
  return (
    <Scroll label={label} isSticky={isSticky}>
      <table class="stacked">
        <thead>
          <tr>
            {columns.map(({ title, figure }) => (
              <th key={title} scope="col" class={figure ? "figure" : ""}>
                {title || <span class="hidden">Actions</span>}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr
              key={keyOf(row)}
              class={[open ? "opens" : "", isOff?.(row) ? "off" : ""].join(" ").trim()}
              onClick={(event) => isPlainClick(event) && open?.(row)}
              {...(isOpen?.(row) ? { "aria-selected": true } : {})}
            >
              {columns.map((column, i) => (
                <Cell key={column.title} column={column} row={row} isFirst={i === 0} />
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </Scroll>
  );
}

function Cell<T>({ column, row, isFirst }: { column: Column<T>; row: T; isFirst: boolean }) {
  const { title, figure, class: named = "", cell } = column;
  const classes = `${typeof named === "function" ? named(row) : named} ${figure ? "figure" : ""}`.trim();
  if (isFirst) {
    return (
      <th scope="row" class={classes}>
        {cell(row)}
      </th>
    );
  }
  return (
    <td class={classes} {...(title ? { "data-label": title } : {})}>
      {cell(row)}
    </td>
  );
}

/** Whether a click hit the row itself, rather than a control in it or the end of a selection. */
function isPlainClick({ target }: MouseEvent): boolean {
  const isControl = target instanceof Element && target.closest("a, button, input") !== null;
  return !isControl && getSelection()?.isCollapsed !== false;
}
