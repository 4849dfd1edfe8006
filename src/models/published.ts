import type { Accuracies } from "../contract/terms.ts";

/**
 * Published accuracies of models: MMLU (knowledge), MATH (maths), HumanEval (code) and DROP, F1 (extraction).
 * Source: the table of https://github.com/openai/simple-evals (README.md, commit 0f2cf33), MIT licence, with one
 * method for the models of OpenAI and the makers' own reports for the others. MATH is MATH-500 from o1 on.
 */
const MODELS: ReadonlyArray<[name: string, knowledge: number, maths: number, code: number, extraction: number]> = [
  ["o4-mini", 0.9, 0.975, 0.973, 0.777],
  ["o3-mini", 0.859, 0.973, 0.963, 0.792],
  ["o3", 0.929, 0.978, 0.874, 0.806],
  ["o1-preview", 0.908, 0.855, 0.924, 0.748],
  ["o1-mini", 0.852, 0.9, 0.924, 0.839],
  ["gpt-4.5-preview", 0.908, 0.871, 0.886, 0.834],
  ["gpt-4.1-mini", 0.875, 0.814, 0.938, 0.81],
  ["gpt-4.1-nano", 0.801, 0.623, 0.87, 0.822],
  ["gpt-4.1", 0.902, 0.821, 0.945, 0.794],
  ["gpt-4o-mini", 0.82, 0.702, 0.872, 0.797],
  ["gpt-4o-2024-11-20", 0.857, 0.685, 0.902, 0.815],
  ["gpt-4o-2024-05-13", 0.872, 0.766, 0.91, 0.837],
  ["gpt-4o", 0.887, 0.759, 0.902, 0.798],
  ["gpt-4-turbo", 0.867, 0.734, 0.882, 0.86],
  ["gpt-4-0125-preview", 0.854, 0.645, 0.866, 0.815],
  ["gpt-4-1106-preview", 0.847, 0.643, 0.837, 0.832],
  ["claude-3-5-sonnet", 0.883, 0.711, 0.92, 0.871],
  ["claude-3-opus", 0.868, 0.601, 0.849, 0.831],
  ["llama-3.1-405b", 0.886, 0.738, 0.89, 0.848],
  ["llama-3.1-70b", 0.82, 0.68, 0.805, 0.796],
  ["llama-3.1-8b", 0.684, 0.519, 0.726, 0.595],
  ["gemini-1.5-pro", 0.819, 0.585, 0.719, 0.789],
  ["gemini-1.5-flash", 0.779, 0.409, 0.715, 0.784],
];

const BY_NAME: ReadonlyMap<string, Accuracies> = new Map(
  MODELS.map(([name, knowledge, maths, code, extraction]) => [name, { knowledge, maths, code, extraction }]),
);

/** The date of a version, such as `-2024-08-06` or `-20240620`, and the `-instruct` of open models. */
const VERSION = /-instruct$|-20\d{2}-?\d{2}-?\d{2}$/;

/**
 * The published accuracies of a model: under its name, or under that without the date of its version. Undefined for
 * any other model, also one whose name only begins like a known one, since that is another product.
 * @param model the vendor's identifier, also with a folder or a maker before it, such as `meta-llama/Llama-3.1-70B`
 */
export function publishedOf(model: string): Accuracies | undefined {
  const name = model
    .toLowerCase()
    .replace(/^.*\//, "")
    .replace(/^meta-/, "")
    .replace(/^llama-?3[._]1[-:]/, "llama-3.1-");
  return BY_NAME.get(name) ?? BY_NAME.get(name.replace(VERSION, ""));
}
