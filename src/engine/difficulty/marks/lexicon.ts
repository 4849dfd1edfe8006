import { classOf, DIGIT, foldText, LETTER } from "./fold.ts";

/**
 * Marks by topic. Marks are separated by commas or line breaks; case and accents do not matter. `word` is a whole word,
 * `stem*` the beginning of a word, and `two words` a phrase. In scripts without spaces a mark is any part of the text.
 */
export type Marks = Readonly<Record<string, string>>;

/** A set of marks that finds the longest one at a place of a text, in a time that depends on the mark only. */
export interface Lexicon {
  /** Number of the topic of the longest mark that starts at `at` in a folded text of `length` units; -1 for none. */
  at(units: Uint16Array, at: number, length: number): number;
}

/** A node and a unit are one number of 31 bits. */
const MOST_NODES = 2 ** 15 - 1;

/**
 * Compiles topics to a trie, in which a step is one look-up without an allocation.
 * @throws Error if a mark belongs to two topics
 */
export function createLexicon(topics: ReadonlyArray<readonly [topic: string, marks: string]>): Lexicon {
  const marks = topics.flatMap(([topic, list], number) =>
    list.split(/[,\n]/).flatMap((raw) => {
      const mark = foldText(raw.trim());
      return mark === "" ? [] : [{ topic, number, isStem: mark.endsWith("*"), text: mark.replace(/\*$/, "") }];
    }),
  );
  const most = marks.reduce((sum, { text }) => sum + text.length, 1);
  if (most > MOST_NODES) throw new Error(`The marks have ${most} characters; at most ${MOST_NODES} are possible.`);
  const trie = createTrie(most);
  /** Topic of the mark that ends at a node, plus one: as a stem and as a whole word. */
  const stems = new Uint8Array(most);
  const words = new Uint8Array(most);
  const owners = new Map<string, string>();
  for (const { topic, number, text, isStem } of marks) {
    const owner = owners.get(text) ?? topic;
    if (owner !== topic) throw new Error(`The mark "${text}" belongs to "${owner}" and "${topic}".`);
    owners.set(text, topic);
    const isWhole = !isStem && isSpaced(text.charCodeAt(text.length - 1));
    (isWhole ? words : stems)[trie.add(text)] = number + 1;
  }
  return {
    at(units, start, length) {
      let [node, found] = [0, 0];
      for (let at = start; at < length; at++) {
        node = trie.step(node, units[at] ?? 0);
        if (node < 0) break;
        const stem = stems[node] ?? 0;
        if (stem !== 0) found = stem;
        const word = words[node] ?? 0;
        if (word !== 0 && (at + 1 === length || !isWordUnit(units[at + 1] ?? 0))) found = word;
      }
      return found - 1;
    },
  };
}

/**
 * A trie of up to `most` nodes; 0 is the root. Its edges are in one hash table with open addressing. An edge is two
 * numbers: its node and unit as the key, and the node that it leads to.
 */
function createTrie(most: number) {
  const bits = Math.ceil(Math.log2(most * 2));
  const shift = 32 - bits;
  const last = 2 ** (bits + 1) - 1;
  const edges = new Int32Array(last + 1).fill(-1);
  const find = (key: number) => {
    let place = (Math.imul(key, 0x9e3779b1) >>> shift) << 1;
    while (edges[place] !== key && edges[place] !== -1) place = (place + 2) & last;
    return place;
  };
  let nodes = 1;
  return {
    /** Adds the path of a text and returns its last node. */
    add(text: string): number {
      let node = 0;
      for (let at = 0; at < text.length; at++) {
        const key = node * 0x10000 + text.charCodeAt(at);
        const place = find(key);
        if (edges[place] === -1) {
          edges[place] = key;
          edges[place + 1] = nodes++;
        }
        node = edges[place + 1] ?? 0;
      }
      return node;
    },
    /** The node to which a unit leads, or -1. */
    step(node: number, unit: number): number {
      // The second number of a free place is -1, too.
      return edges[find(node * 0x10000 + unit) + 1] ?? -1;
    },
  };
}

/** Whether a unit is a letter of a script whose words do not take endings like those of Korean. */
function isSpaced(unit: number): boolean {
  return classOf(unit) === LETTER && unit < HANGUL;
}

const HANGUL = 0xac00;

function isWordUnit(unit: number): boolean {
  const kind = classOf(unit);
  return kind === LETTER || kind === DIGIT;
}
