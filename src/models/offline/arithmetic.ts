/** The signs between two numbers; a higher rank goes first. */
const RANKS: Readonly<Record<string, number>> = { "+": 1, "-": 1, "*": 2, "/": 2 };

/** Words and the signs they stand for, in the order of replacement. */
const WORDS: ReadonlyArray<readonly [words: RegExp, sign: string]> = [
  [/[?=!:]|\.$|\b(?:what(?:'s| is)|how much is|calculate|compute|solve|please)\b/g, ""],
  [/(?<=\d),(?=\d{3}(?!\d))/g, ""],
  [/\bplus\b/g, "+"],
  [/\bminus\b|−/g, "-"],
  [/\b(?:times|multiplied by)\b|[×·]|(?<=\d *)x(?= *\d)/g, "*"],
  [/\bdivided by\b|÷/g, "/"],
  [/(?:%| percent) of /g, "/100 * "],
  [/^ *([\d.]+) *([-+]) *([\d.]+)(?:%| percent) *$/g, "$1 * (1 $2 $3/100)"],
];

/** Reads a question that is a calculation and nothing else; undefined for any other, and where the value is not finite. */
export function calculate(question: string): { expression: string; value: number } | undefined {
  if (question.length > 300 || /\d{4}-\d\d-\d\d/.test(question)) return undefined;
  const text = WORDS.reduce((text, [words, sign]) => text.replace(words, sign), question.trim().toLowerCase());
  const tokens = text.match(/\d+(?:\.\d+)?|[-+*/%()]/g) ?? [];
  if (tokens.join("") !== text.replace(/\s/g, "") || !/\d.*[-+*/%]/.test(text)) return undefined;
  const expression = tokens.join(" ").replace(/(?<=\() | (?=[)%])/g, "");
  const value = evaluate(tokens, 1);
  const isWhole = tokens.length === 0 && Number.isFinite(value);
  return isWhole ? { expression, value: Number(value.toPrecision(15)) } : undefined;
}

/** Takes an expression with signs of a rank or above off the tokens; NaN where they are none. */
function evaluate(tokens: string[], least: number): number {
  const token = tokens.shift();
  let value = token === "-" ? -evaluate(tokens, 3) : token === "(" ? evaluate(tokens, 1) : Number(token);
  if (token === "(" && tokens.shift() !== ")") return Number.NaN;
  if (tokens[0] === "%" && tokens.shift()) value /= 100;
  for (let rank = RANKS[tokens[0] ?? ""]; rank && rank >= least; rank = RANKS[tokens[0] ?? ""]) {
    const sign = tokens.shift();
    const right = evaluate(tokens, rank + 1);
    if (rank === 2) value = sign === "*" ? value * right : value / right;
    else value += sign === "+" ? right : -right;
  }
  return value;
}
