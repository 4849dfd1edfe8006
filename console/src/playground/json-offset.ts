const TOKENS = /"(?:[^"\\]|\\.)*"|[{}[\],]|[^\s{}[\]:,"]+/g;

/**
 * Finds the offset of a member's name in a JSON text. Of several members with the same name, the last one counts.
 * @param text valid JSON
 * @param path names from the root; arrays are not searched. An empty path means the start of the text.
 * @returns undefined if there is no such member
 */
export function offsetOf(text: string, path: readonly string[]): number | undefined {
  const tokens = [...text.matchAll(TOKENS)].map((match) => ({ text: match[0], at: match.index }));
  let next = 0;
  let found: number | undefined = path.length === 0 ? 0 : undefined;

  // Reads one value. `depth` is the number of names of the path that lead to it; undefined if it is not on the path.
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
        // This also discards what was found in an earlier member of the same name.
        if (isOnPath) found = depth === path.length - 1 ? token.at : undefined;
        value(isOnPath ? depth + 1 : undefined);
      }
      next += 1;
    }
  };
  value(0);
  return found;
}
