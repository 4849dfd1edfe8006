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
  texts: ReadonlyArray<{ name: string; text: string; at?: number | undefined }>;
  images?: ReadonlyArray<NonNullable<Message["images"]>[number] & { at?: number | undefined }>;
}

/**
 * Inserts material at the beginning of the messages that it belongs to, marked as data. Models answer best when the
 * question follows its material. `at` is the index of the message; undefined: the user's last one.
 */
export function ground(conversation: Conversation, { texts, images = [] }: Material): Conversation {
  if (texts.length === 0 && images.length === 0) return conversation;
  const messages = [...conversation.messages];
  const places = new Set([...texts, ...images].map(({ at }) => at));
  for (const place of places) if (place !== undefined) messages[place] = withMaterial(messages[place], place);
  if (places.has(undefined)) {
    // Results of tools are in messages of the user, too.
    const last = messages.findLastIndex(({ role, results }) => role === "user" && !results);
    if (last < 0) messages.unshift(withMaterial(undefined, undefined));
    else messages[last] = withMaterial(messages[last], undefined);
  }
  return { ...conversation, messages };

  function withMaterial(message: Message = { role: "user", text: "" }, place: number | undefined): Message {
    const blocks = texts.filter(({ at }) => at === place).map(({ name, text }) => untrusted(name, text));
    const own = images.filter(({ at }) => at === place).map(({ at: _, ...image }) => image);
    return {
      ...message,
      text: [...blocks, message.text].filter((text) => text !== "").join("\n\n"),
      ...(own.length === 0 ? {} : { images: [...(message.images ?? []), ...own] }),
    };
  }
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
