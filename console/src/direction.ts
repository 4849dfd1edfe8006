/** Letters that are written from right to left, behind characters that have no direction of their own. */
const RIGHT_TO_LEFT =
  /^\P{L}*[\p{Script=Arabic}\p{Script=Hebrew}\p{Script=Syriac}\p{Script=Thaana}\p{Script=Nko}\p{Script=Adlam}]/u;

/** Most characters in which the first letter is sought. */
const MOST = 1_000;

/**
 * The direction of a text, by its first letter. Browsers find it with `dir="auto"`, too, but then need seconds for each
 * change of a text of a megabyte.
 */
export function directionOf(text: string): "ltr" | "rtl" {
  return RIGHT_TO_LEFT.test(text.slice(0, MOST)) ? "rtl" : "ltr";
}
