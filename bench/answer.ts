/** Number of content events in a streamed answer. Each has one word. */
export const EVENTS = 60;

/** The events of the answer that the static upstream gives to every request. */
export const WORDS: readonly string[] = Array.from({ length: EVENTS }, (_, i) => `${i === 0 ? "" : " "}word${i}`);

export const ANSWER = WORDS.join("");
