/**
 * A regular expression that is written over several lines: line breaks and the indentation after them are no part of
 * the pattern.
 *
 *     const word = regex("i")`
 *       \b(one|two
 *       |three)\b
 *     `;
 */
export function regex(flags: string): (pattern: TemplateStringsArray) => RegExp {
  return ({ raw }) => new RegExp(raw.join("").replace(/\n\s*/g, ""), flags);
}
