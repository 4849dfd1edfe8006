/** Content events of a streamed answer; each is one word. */
export const EVENTS = 60;

/** The answer that the static upstream gives to everything, by the events of its stream. */
export const WORDS: readonly string[] = Array.from({ length: EVENTS }, (_, i) => `${i === 0 ? "" : " "}word${i}`);

export const ANSWER = WORDS.join("");
