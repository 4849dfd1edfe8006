import { create } from "@bufbuild/protobuf";
import { type Notice, NoticeSchema } from "../../gen/chorus/v1/generation_pb.js";
import { NOTICE_TEXTS } from "../contract/notice-texts.ts";
import type { Searched } from "../engine/grounding.ts";

/** @param field path of the request field that the notice is about */
export function notice(code: string, message: string, field?: string): Notice {
  return create(NoticeSchema, { code, message, ...(field === undefined ? {} : { field }) });
}

function fixed(code: keyof typeof NOTICE_TEXTS, field?: string): Notice {
  return notice(code, NOTICE_TEXTS[code], field);
}

export const OFFLINE = fixed("offline_models");

export const CUT_SHORT = fixed("cut_short");

export const CONTENT_FILTERED = fixed("content_filtered");

export const EFFORT_LOWERED = fixed("effort_lowered");

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
      return [fixed("web_search_failed", "web_search")];
    case "unavailable":
      return [fixed("web_search_unavailable", "web_search")];
  }
}
