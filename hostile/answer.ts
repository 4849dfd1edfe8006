/** What the vendor answers to a prompt without a word in brackets. */
export const ANSWER = "Seven words are enough for a test.";
/** A prompt that the vendor answers so. */
export const PROMPT = "How many words are enough?";
