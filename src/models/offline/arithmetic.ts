/** The signs between two numbers; a higher rank goes first. */
const RANKS: Readonly<Record<string, number>> = { "+": 1, "-": 1, "*": 2, "/": 2, "^": 3 };

/** Words and the signs they stand for, in the order of replacement. */
const WORDS: ReadonlyArray<readonly [words: RegExp, sign: string]> = [
  [
    /[?=!:;]|[.,]$|\b(?:what(?:'?s)?|is|are|does|equals?|how much|calculate|compute|solve|result of|please|was|ist|wie ?viel|the)\b/g,
    "",
  ],
  [/(?<=\d),(?=\d{3}(?!\d))/g, ""],
  [/\bplus\b/g, "+"],
  [/\b(?:minus|moins|less)\b|−/g, "-"],
  [/\b(?:times|multiplied by|mal|fois)\b|[×·]|(?<=\d *)x(?= *\d)/g, "*"],
  [/\b(?:divided by|over|geteilt durch|divisé par)\b|÷/g, "/"],
  [/\bto +power of\b|\*\*/g, "^"],
  [/(?:%| percent| prozent) (?:of|von|de) /g, "/100 * "],
  [/^ *([\d.]+) *([-+]) *([\d.]+)(?:%| percent) *$/g, "$1 * (1 $2 $3/100)"],
  [/(?<=\d),(?=\d)/g, "."],
];

/** Reads a question that is a calculation and nothing else; undefined for any other, and where the value is not finite. */
export function calculate(question: string): { expression: string; value: number } | undefined {
  if (question.length > 300 || /\d{4}-\d\d-\d\d/.test(question)) return undefined;
  const list = /\b(sum|average|product|difference) (?:of|between) ([-\d., and]+)/;
  let text = question.toLowerCase().replace(list, (_, name: string, items: string) => {
    const parts = items.split(/[,\s]+(?:and\s+)?/).filter(Boolean);
    const joined = `(${parts.join(name === "product" ? "*" : name === "difference" ? "-" : "+")})`;
    return name === "average" ? `${joined}/${parts.length}` : joined;
  });
  for (const [words, sign] of WORDS) text = text.replace(words, sign);
  const tokens = text.match(/\d+(?:\.\d+)?|[-+*/^%()]/g) ?? [];
  if (tokens.join("") !== text.replace(/\s/g, "") || !/\d.*[-+*/^%]/.test(text)) return undefined;
  const expression = tokens.join(" ").replace(/(?<=\() | (?=[)%])/g, "");
  const value = evaluate(tokens, 1);
  return Number.isFinite(value) && tokens.length === 0
    ? { expression, value: Number(value.toPrecision(15)) }
    : undefined;
}

/** Takes an expression with signs of a rank or above off the tokens; NaN where they are none. */
function evaluate(tokens: string[], least: number): number {
  const token = tokens.shift();
  let value = token === "-" ? -evaluate(tokens, 3) : token === "(" ? evaluate(tokens, 1) : Number(token);
  if (token === "(" && tokens.shift() !== ")") return Number.NaN;
  if (tokens[0] === "%" && tokens.shift()) value /= 100;
  for (let rank = RANKS[tokens[0] ?? ""]; rank && rank >= least; rank = RANKS[tokens[0] ?? ""]) {
    const sign = tokens.shift();
    const right = evaluate(tokens, sign === "^" ? rank : rank + 1);
    if (sign === "^") value **= right;
    else if (rank === 2) value = sign === "*" ? value * right : value / right;
    else value += sign === "+" ? right : -right;
  }
  return value;
}
