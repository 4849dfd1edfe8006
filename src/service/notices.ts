import { create } from "@bufbuild/protobuf";
import { type Notice, NoticeSchema } from "../../gen/chorus/v1/generation_pb.js";
import type { Searched } from "../engine/grounding.ts";

/** Something that the caller should know about a request that succeeds. */
export function notice(code: string, message: string, field?: string): Notice {
  return create(NoticeSchema, { code, message, ...(field === undefined ? {} : { field }) });
}

export const OFFLINE = notice(
  "offline_models",
  "No vendor is configured. The built-in offline models answered; they only extract and calculate.",
);

export const CUT_SHORT = notice("cut_short", "The service cut the answer short. It is not charged.");

/** What the caller should know about a search of the web. */
export function searchNotices(searched: Searched): Notice[] {
  const about = (code: string, message: string) => [notice(code, message, "web_search")];
  switch (searched.outcome) {
    case "found":
      return about("web_search_sources", `The answer could use these results of a web search: ${searched.sources}`);
    case "nothing":
      return about("web_search_sources", "The web search found nothing that the answer could use.");
    case "failed":
      return about("web_search_failed", "The web could not be searched. The answer was made without it.");
    case "unavailable":
      return about("web_search_unavailable", "No web search is configured. The answer was made without it.");
  }
}
