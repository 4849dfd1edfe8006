import { parseArgs } from "node:util";
import { runSchedule, STEPS } from "./schedule.ts";

/** Runs schedules and prints the seed of the first one that fails: `npm run simulate -- --schedules 1000 --seed 1`. */
const { values } = parseArgs({
  options: { schedules: { type: "string", default: "100000" }, seed: { type: "string", default: "1" } },
});
const first = Number(values.seed);
const schedules = Number(values.schedules);
const start = performance.now();
for (let seed = first; seed < first + schedules; seed++) {
  try {
    runSchedule(seed);
  } catch (error) {
    process.stderr.write(
      `The schedule of seed ${seed} fails. Repeat it: npm run simulate -- --schedules 1 --seed ${seed}\n`,
    );
    throw error;
  }
}
const seconds = (performance.now() - start) / 1_000;
process.stdout.write(`${schedules} schedules of ${STEPS} steps in ${seconds.toFixed(1)} s, from seed ${first}.\n`);
