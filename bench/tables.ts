/** A table in Markdown. The first column is text, the others are figures. */
export function table(head: string[], rows: string[][]): string {
  const align = head.map((_, i) => (i === 0 ? "---" : "--:"));
  return [head, align, ...rows].map((cells) => `| ${cells.join(" | ")} |`).join("\n");
}

/** A figure with this number of digits after the point, and a dash if it is unknown. */
export function figure(value: number | undefined, digits = 0): string {
  if (value === undefined || Number.isNaN(value)) return "–";
  return value.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

/** A part of one, such as 0.5, as a percentage. */
export function percent(value: number | undefined): string {
  return value === undefined ? "–" : `${figure(value * 100)} %`;
}
