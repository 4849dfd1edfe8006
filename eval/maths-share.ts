import type { RecordedFile } from "./data.ts";
import { gainOf, panelKinds, votersOf } from "./panels.ts";
import { mean } from "./score.ts";

const SHARES = [0.3, 0.5, 0.7, 0.85, 1];
const PANELS = 40;

/**
 * What a further vote should count in calculations, on the questions of a group "math": for each share the mean and the
 * worst gain over the best member in points. The share is chosen on every second question and checked on the others.
 * @returns undefined for a file without such a group
 */
export function mathsShare({ name, rows }: RecordedFile): string | undefined {
  const maths = rows.filter(({ group }) => group === "math");
  if (maths.length === 0) return undefined;
  const lines = [0, 1].flatMap((half) => {
    const voters = votersOf(maths.filter((_, at) => at % 2 === half));
    return panelKinds(voters)
      .filter(({ panels }) => panels.length > 0)
      .map(({ title, panels }) => {
        const cells = SHARES.map((further) => {
          const gains = panels.slice(0, PANELS).map((panel) => 100 * gainOf(panel, "known", { further }).gain);
          return `${mean(gains).toFixed(2)} (${Math.min(...gains).toFixed(1)})`;
        });
        return `| ${half === 0 ? "chosen" : "checked"}: ${title} | ${cells.join(" | ")} |`;
      });
  });
  const header = `| panels | ${SHARES.join(" | ")} |\n| --- |${" --- |".repeat(SHARES.length)}`;
  const title = `## Further votes in mathematics: ${name}`;
  const about = "Mean gain over the best member in points (worst panel), by the share of a further vote.";
  return `${title}\n\n${about}\n\n${header}\n${lines.join("\n")}\n`;
}
