import { classOf, fold, LETTER, RUN, SPACE } from "./marks/fold.ts";
import { LEXICON, TOPICS, type Topic } from "./topics.ts";

/** Topics of demands on the form of an answer. */
const FORMS: ReadonlySet<Topic | undefined> = new Set<Topic>(["choice", "extraction", "translation"]);
/** Characters of a text that are read: demands are at its beginning, or short and at its end. */
const READ = 1_000;
/** What precedes a demand: the start of a sentence or of an item, or who has to meet it. */
const DEMANDED = /(?:^|[.!:\n。！：]|\b(?:you|to|and|please|sie|vous|must|should|only))[\s#*"\d.)-]{0,8}$/i;

/**
 * The form that instructions around a task demand of its answer: a choice ("Answer with yes or no."), data from the
 * task's text ("Classify each message."), or a translation. Nothing else in instructions tells the kind of a task.
 */
export function formOf(instructions: readonly string[]): Topic | undefined {
  for (const text of instructions) {
    const part = text.length <= 2 * READ ? text : `${text.slice(0, READ)}\n${text.slice(-READ)}`;
    const found = formIn(part);
    if (found !== undefined) return found;
  }
  return undefined;
}

function formIn(text: string): Topic | undefined {
  const upper = text.toUpperCase();
  const units = new Uint16Array(upper.length);
  for (let at = 0; at < units.length; at++) units[at] = fold(upper.charCodeAt(at));
  for (let at = 0, previous = SPACE; at < units.length; at++) {
    const kind = classOf(units[at] ?? 0);
    const isStart = (kind === LETTER && previous !== LETTER) || kind === RUN;
    previous = kind;
    if (!isStart) continue;
    const topic = TOPICS[LEXICON.at(units, at, units.length)];
    if (!FORMS.has(topic)) continue;
    if (topic === "choice" || DEMANDED.test(upper.slice(Math.max(0, at - 24), at))) return topic;
  }
  return undefined;
}
