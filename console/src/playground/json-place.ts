const TOKENS = /"(?:[^"\\]|\\.)*"|[{}[\],]|[^\s{}[\]:,"]+/g;

/**
 * Where the name of a member stands in a JSON text; of members with the same name the last counts.
 * @param text valid JSON
 * @param path names from the root down; lists are not entered. An empty path is the start of the text.
 * @returns undefined if there is no such member
 */
export function placeOf(text: string, path: readonly string[]): number | undefined {
  const tokens = [...text.matchAll(TOKENS)].map((match) => ({ text: match[0], at: match.index }));
  let next = 0;
  let found: number | undefined = path.length === 0 ? 0 : undefined;

  // Reads one value; `depth` names of the path lead to it, or undefined when it is beside the path.
  const value = (depth: number | undefined): void => {
    const opening = tokens[next++]?.text;
    if (opening === "[") {
      while (next < tokens.length && tokens[next]?.text !== "]") {
        if (tokens[next]?.text === ",") next += 1;
        else value(undefined);
      }
      next += 1;
    } else if (opening === "{") {
      while (next < tokens.length && tokens[next]?.text !== "}") {
        const token = tokens[next++];
        if (token === undefined || token.text === ",") continue;
        const isOnPath = depth !== undefined && depth < path.length && JSON.parse(token.text) === path[depth];
        // An earlier member of the same name does not count, nor does what was found in it.
        if (isOnPath) found = depth === path.length - 1 ? token.at : undefined;
        value(isOnPath ? depth + 1 : undefined);
      }
      next += 1;
    }
  };
  value(0);
  return found;
}
