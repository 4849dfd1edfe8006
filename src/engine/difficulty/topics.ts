import { createLexicon } from "./marks/lexicon.ts";
import { MATHS } from "./marks/maths.ts";
import { QUESTIONS } from "./marks/questions.ts";
import { SUBJECTS } from "./marks/subjects.ts";
import { TASKS } from "./marks/tasks.ts";

const MARKS = { ...MATHS, ...SUBJECTS, ...TASKS, ...QUESTIONS };

/** What a mark in a prompt shows. */
export type Topic = keyof typeof MARKS;

/** Topics by their number in the lexicon. */
export const TOPICS = Object.keys(MARKS) as readonly Topic[];
/** The number of each topic. */
export const TOPIC_NUMBERS = Object.fromEntries(TOPICS.map((topic, number) => [topic, number])) as Readonly<
  Record<Topic, number>
>;
export const LEXICON = createLexicon(Object.entries(MARKS));
