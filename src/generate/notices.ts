import { create } from "@bufbuild/protobuf";
import { type Notice, NoticeSchema } from "../../gen/chorus/v1/generation_pb.js";
import type { Searched } from "../engine/grounding.ts";

/** @param field path of the request field that the notice is about */
export function notice(code: string, message: string, field?: string): Notice {
  return create(NoticeSchema, { code, message, ...(field === undefined ? {} : { field }) });
}

export const OFFLINE = notice(
  "offline_models",
  "No vendor is configured. The built-in offline models answered; they only extract and calculate.",
);

export const CUT_SHORT = notice("cut_short", "The service cut the answer short. It is not charged.");

export const CONTENT_FILTERED = notice(
  "content_filtered",
  "A safety filter of the model ended the answer early. It is not charged.",
);

export const EFFORT_LOWERED = notice(
  "effort_lowered",
  "A budget of this key, user or tag is used up. The request was answered with the effort low.",
);

/** Notices about the outcome of a web search. */
export function searchNotices(searched: Searched): Notice[] {
  const searchNotice = (code: string, message: string) => [notice(code, message, "web_search")];
  switch (searched.outcome) {
    case "found":
      return searchNotice(
        "web_search_sources",
        `The answer could use these results of a web search: ${searched.sources}`,
      );
    case "nothing":
      return searchNotice("web_search_sources", "The web search found nothing that the answer could use.");
    case "failed":
      return searchNotice("web_search_failed", "The web could not be searched. The answer was made without it.");
    case "unavailable":
      return searchNotice("web_search_unavailable", "No web search is configured. The answer was made without it.");
  }
}
