/** Messages of the notices whose text is the same for all requests, by code. */
export const NOTICE_TEXTS = {
  offline_models: "No vendor is configured. The built-in offline models answered; they only extract and calculate.",
  cut_short: "The service cut the answer short. It is not charged.",
  content_filtered: "A safety filter of the model ended the answer early. It is not charged.",
  effort_lowered: "A budget of this key, user or tag is used up. The request was answered with the effort low.",
  web_search_failed: "The web could not be searched. The answer was made without it.",
  web_search_unavailable: "No web search is configured. The answer was made without it.",
} as const;
