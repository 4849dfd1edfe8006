import type { WrittenCall } from "../../models/port/model.ts";
import type { Tokenizer } from "../tokens/tokens.ts";

/** Tokens of calls, as output: of their names and arguments. */
export async function tokensOfCalls(
  calls: readonly WrittenCall[],
  { countAsync }: Pick<Tokenizer, "countAsync">,
): Promise<number> {
  let tokens = 0;
  for (const { name, arguments: given } of calls) tokens += (await countAsync(name)) + (await countAsync(given));
  return tokens;
}
