import { searchQuery } from "../search/query.ts";
import { CITE_INSTRUCTION, listSources, renderResults } from "../search/render.ts";
import type { Search } from "../search/search.ts";
import { SearchError } from "../search/search-error.ts";
import type { Conversation, Turn } from "./prompt.ts";
import type { ToldStep } from "./trace.ts";
import { untrusted } from "./untrusted.ts";

/** What others wrote that belongs to the request: texts by name, and images. */
export interface Material {
  texts: ReadonlyArray<{ name: string; text: string }>;
  images?: NonNullable<Turn["images"]>;
}

/** Puts material before what the user said last, marked as data: models heed a question best where it stands behind what it is about. */
export function ground(asked: Conversation, { texts, images = [] }: Material): Conversation {
  if (texts.length === 0 && images.length === 0) return asked;
  const turns = [...asked.turns];
  let at = turns.findLastIndex(({ role }) => role === "user");
  if (at < 0) {
    at = 0;
    turns.unshift({ role: "user", text: "" });
  }
  const last: Turn = turns[at] ?? { role: "user", text: "" };
  const blocks = texts.map(({ name, text }) => untrusted(name, text));
  turns[at] = {
    ...last,
    text: [...blocks, last.text].filter((text) => text !== "").join("\n\n"),
    ...(images.length === 0 ? {} : { images: [...(last.images ?? []), ...images] }),
  };
  return { ...asked, turns };
}

/** The steps of the answer are numbered from 1. */
const SEARCH_STEP = 0;

/** What a search of the web came to. An answer can always be given without it. */
export type Searched =
  | { conversation: Conversation; outcome: "found"; sources: string }
  | { conversation: Conversation; outcome: "nothing" | "unavailable" }
  | { conversation: Conversation; outcome: "failed"; error: SearchError };

/**
 * Searches the web for what the user said last, and puts what it finds into the conversation, numbered and marked as data.
 * @param said the conversation before anything that others wrote was put into it
 * @throws the reason of `signal`
 */
export async function* searchWeb(
  search: Search | undefined,
  asked: Conversation,
  said: Conversation,
  signal: AbortSignal,
): AsyncGenerator<{ type: "step"; step: ToldStep }, Searched> {
  if (!search) return { conversation: asked, outcome: "unavailable" };
  const step = { id: SEARCH_STEP, kind: "search", role: "service" } as const;
  yield { type: "step", step };
  try {
    const results = await search.find(searchQuery(said.turns), signal);
    yield { type: "step", step: { ...step, outcome: "ok", detail: `${results.length} results` } };
    if (results.length === 0) return { conversation: asked, outcome: "nothing" };
    const texts = [{ name: "results of a web search", text: renderResults(results) }];
    const cited = { ...asked, system: [...asked.system, CITE_INSTRUCTION] };
    return { conversation: ground(cited, { texts }), outcome: "found", sources: listSources(results) };
  } catch (error) {
    if (!(error instanceof SearchError)) throw error;
    yield { type: "step", step: { ...step, outcome: "failed", detail: error.failure } };
    return { conversation: asked, outcome: "failed", error };
  }
}
