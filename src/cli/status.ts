import type { WriteStream } from "node:tty";

const ESC = "\u001b";
const SAVE = `${ESC}7`;
const RESTORE = `${ESC}8`;
/** Signals that end the command line, and by themselves run no code of it. */
const ENDS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

/**
 * A line at the bottom of a terminal, below the text that is printed: `show` replaces its text, `end` removes it.
 * Reserves the last row of a terminal (DECSTBM, supported by all current terminals); other output scrolls above it.
 * @returns a line that shows nothing if `terminal` is a file or pipe, or has fewer than 3 rows
 */
export function statusLine(terminal: WriteStream): { show(text: string): void; end(): void } {
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
    for (const signal of ENDS) process.off(signal, interrupted);
    terminal.write(`${SAVE}${ESC}[r${ESC}[${rows()};1H${ESC}[2K${RESTORE}`);
  };
  const interrupted = (signal: NodeJS.Signals) => {
    end();
    // Without a listener, the signal ends the process, and the caller sees which signal it was.
    process.kill(process.pid, signal);
  };
  terminal.on("resize", resized);
  for (const signal of ENDS) process.on(signal, interrupted);
  // Also restores the terminal when an error ends the program.
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
