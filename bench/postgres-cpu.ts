import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

/**
 * CPU time of an embedded Postgres so far in seconds, including its ended processes. 0 on systems other than Linux.
 * @param folder its DATA_DIR
 */
export function serverCpuSeconds(folder: string): number {
  try {
    const [postmaster = ""] = readFileSync(join(folder, "postgres", "data", "postmaster.pid"), "utf8").split("\n");
    let ticks = 0;
    for (const pid of readdirSync("/proc")) {
      if (!/^\d+$/.test(pid)) continue;
      const stat = readStat(pid);
      if (pid === postmaster) ticks += sum(stat, [11, 12, 13, 14]);
      else if (stat[1] === postmaster) ticks += sum(stat, [11, 12]);
    }
    return ticks / 100;
  } catch {
    return 0;
  }
}

/** Fields of /proc/<pid>/stat after the command's name. */
function readStat(pid: string): string[] {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, "utf8");
    return text.slice(text.lastIndexOf(")") + 2).split(" ");
  } catch {
    return [];
  }
}

function sum(fields: string[], places: number[]): number {
  return places.reduce((total, place) => total + Number(fields[place] ?? 0), 0);
}
