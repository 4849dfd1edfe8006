/** Environment variable with the address at which test files ask for what all files of the run share. */
export const RUN_VARIABLE = "CHORUS_TEST_RUN";

/** What the main process of the run does for test files (see setup.ts). */
export type Action = "create" | "drop" | "service" | "host" | "cli" | "cluster" | "shell" | "browser";

/** Asks the main process of the run. @throws Error with the text of its failure */
export async function ask(action: Action, body = ""): Promise<string> {
  const response = await fetch(`${process.env[RUN_VARIABLE]}/${action}`, { method: "POST", body });
  const text = await response.text();
  if (!response.ok) throw new Error(text);
  return text;
}
