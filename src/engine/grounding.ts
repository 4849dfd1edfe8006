import type { Signal } from "../concurrency/abort.ts";
import type { Requester } from "../concurrency/breaker.ts";
import type { Message } from "../models/port/model.ts";
import { searchQuery } from "../search/query.ts";
import { CITE_INSTRUCTION, listSources, renderResults } from "../search/render.ts";
import type { Search } from "../search/search.ts";
import { SearchError } from "../search/search-error.ts";
import type { Conversation } from "./prompt.ts";
import { untrusted } from "./text/untrusted.ts";
import type { ReportedStep } from "./trace.ts";

/** Untrusted content that belongs to the request: files or search results, and images. */
interface Material {
  texts: ReadonlyArray<{ name: string; text: string }>;
  images?: NonNullable<Message["images"]>;
}

/**
 * Inserts material before the user's last message, marked as data. Models answer best when the question follows its
 * material.
 */
export function ground(conversation: Conversation, { texts, images = [] }: Material): Conversation {
  if (texts.length === 0 && images.length === 0) return conversation;
  const messages = [...conversation.messages];
  // Results of tools are in messages of the user, too.
  let at = messages.findLastIndex(({ role, results }) => role === "user" && !results);
  if (at < 0) {
    at = 0;
    messages.unshift({ role: "user", text: "" });
  }
  const last: Message = messages[at] ?? { role: "user", text: "" };
  const blocks = texts.map(({ name, text }) => untrusted(name, text));
  messages[at] = {
    ...last,
    text: [...blocks, last.text].filter((text) => text !== "").join("\n\n"),
    ...(images.length === 0 ? {} : { images: [...(last.images ?? []), ...images] }),
  };
  return { ...conversation, messages };
}

/** Number of the search step; the steps of the plan start at 1. */
const SEARCH_STEP = 0;

/** Result of a web search. The answer does not depend on its success. */
export type Searched =
  | { conversation: Conversation; outcome: "found"; sources: string }
  | { conversation: Conversation; outcome: "nothing" | "unavailable" }
  | { conversation: Conversation; outcome: "failed"; error: SearchError };

/**
 * Searches the web for the user's last message and inserts the results into the conversation, numbered and marked as
 * data.
 * @param original the conversation before material was inserted, from which the query is made
 * @param requester the request that the search is for
 * @throws the reason of `signal`
 */
export async function* searchWeb(
  search: Search | undefined,
  conversation: Conversation,
  original: Conversation,
  signal: Signal,
  requester?: Requester,
): AsyncGenerator<{ type: "step"; step: ReportedStep }, Searched> {
  if (!search) return { conversation, outcome: "unavailable" };
  const step = { id: SEARCH_STEP, kind: "search", role: "service" } as const;
  yield { type: "step", step };
  try {
    const results = await search.find(searchQuery(original.messages), signal, requester);
    yield { type: "step", step: { ...step, outcome: "ok", detail: `${results.length} results` } };
    if (results.length === 0) return { conversation, outcome: "nothing" };
    const texts = [{ name: "results of a web search", text: renderResults(results) }];
    const cited = { ...conversation, system: [...conversation.system, CITE_INSTRUCTION] };
    return { conversation: ground(cited, { texts }), outcome: "found", sources: listSources(results) };
  } catch (error) {
    if (!(error instanceof SearchError)) throw error;
    yield { type: "step", step: { ...step, outcome: "failed", detail: error.failure } };
    return { conversation, outcome: "failed", error };
  }
}
