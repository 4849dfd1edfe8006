import type { Row } from "../../eval/recording.ts";

/**
 * Questions whose gold answer is always "A". `answers` has one letter per question for each model:
 * `-` is an unreadable answer, a space means that the model did not run.
 */
export function rowsOf(answers: Record<string, string>, cost?: Record<string, number>): Row[] {
  const length = Math.max(...Object.values(answers).map((each) => each.length), 0);
  return Array.from({ length }, (_, index) => ({
    id: `q-${index}`,
    group: "g",
    prompt: `Question ${index}\nA. yes\nB. no`,
    gold: "A",
    models: Object.fromEntries(
      Object.entries(answers).flatMap(([name, all]) => {
        const answer = all[index] ?? " ";
        if (answer === " ") return [];
        const price = cost?.[name];
        return [
          [
            name,
            {
              answer: answer === "-" ? null : answer,
              score: answer === "A" ? 1 : 0,
              ...(price === undefined ? {} : { cost_usd: price }),
            },
          ],
        ];
      }),
    ),
  }));
}
