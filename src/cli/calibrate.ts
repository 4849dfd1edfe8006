import type { Command } from "commander";
import { wantsJson } from "./command.ts";
import type { CalibrationOptions } from "./run-calibration.ts";

/** `chorus calibrate`: measures the accuracy of every model of the catalogue. Needs no running service. */
export function addCalibrate(program: Command): void {
  program
    .command("calibrate")
    .description("ask every model of the catalogue questions with known answers, and write their accuracies")
    .option("--each <n>", "questions of each kind, 1 to 200 (knowledge: at most 30)", "25")
    .option("--questions <file>", 'questions of your own, one a line: {"ability","prompt","answer"}')
    .option("--out <file>", 'file to write; default: the catalogue\'s "accuracies", else chorus.accuracies.json')
    .option("--yes", "do not ask before the calls, which your vendors charge")
    .action(async (options: CalibrationOptions, command: Command) => {
      // No other command needs models: loading them takes 0.05 s.
      const { runCalibration } = await import("./run-calibration.ts");
      await runCalibration(options, wantsJson(command));
    });
}
