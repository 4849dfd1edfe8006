import { readdirSync, readFileSync, readlinkSync } from "node:fs";

/** What the operating system says of a process. Undefined on systems other than Linux. */
export interface ProcessFacts {
  /** Open sockets. */
  sockets: number | undefined;
  /** Resident memory now, and the most so far, in bytes. */
  resident: number | undefined;
  peak: number | undefined;
}

export function processFacts(pid: number | undefined): ProcessFacts {
  return { sockets: sockets(pid), resident: memory(pid, "VmRSS"), peak: memory(pid, "VmHWM") };
}

function sockets(pid: number | undefined): number | undefined {
  const folder = `/proc/${pid}/fd`;
  try {
    return readdirSync(folder).filter((file) => isSocket(`${folder}/${file}`)).length;
  } catch {
    return undefined;
  }
}

function isSocket(path: string): boolean {
  try {
    return readlinkSync(path).startsWith("socket:");
  } catch {
    // The file was closed in the meantime.
    return false;
  }
}

function memory(pid: number | undefined, field: "VmRSS" | "VmHWM"): number | undefined {
  try {
    const [, kilobytes] =
      new RegExp(`^${field}:\\s*(\\d+) kB$`, "m").exec(readFileSync(`/proc/${pid}/status`, "utf8")) ?? [];
    return kilobytes === undefined ? undefined : Number(kilobytes) * 1_024;
  } catch {
    return undefined;
  }
}
