import type { WriteStream } from "node:tty";

/** A line at the bottom of a terminal that text above it does not disturb. */
export interface StatusLine {
  /** What the line says from now on, cut at the terminal's width. */
  show(text: string): void;
  /** Takes the line away. */
  end(): void;
}

const ESC = "\u001b";
const SAVE = `${ESC}7`;
const RESTORE = `${ESC}8`;

/**
 * Sets the last row of a terminal apart (DECSTBM, which every terminal of today knows), so that what is printed scrolls above it.
 * @returns a line that shows nothing where `terminal` is none
 */
export function statusLine(terminal: WriteStream): StatusLine {
  if (!terminal.isTTY || terminal.rows < 3) return { show: () => undefined, end: () => undefined };
  let text = "";
  const rows = () => terminal.rows;
  const reserve = () => terminal.write(`\n${SAVE}${ESC}[1;${rows() - 1}r${RESTORE}${ESC}[1A`);
  const draw = () => {
    const line = [...text].slice(0, terminal.columns - 1).join("");
    terminal.write(`${SAVE}${ESC}[${rows()};1H${ESC}[2K${ESC}[2m${line}${ESC}[0m${RESTORE}`);
  };
  const resized = () => {
    reserve();
    draw();
  };
  const end = () => {
    terminal.off("resize", resized);
    process.off("exit", end);
    terminal.write(`${SAVE}${ESC}[r${ESC}[${rows()};1H${ESC}[2K${RESTORE}`);
  };
  terminal.on("resize", resized);
  // Whatever ends the program, the terminal gets its last row back.
  process.on("exit", end);
  reserve();
  return {
    show(next) {
      text = next;
      draw();
    },
    end,
  };
}
