const PRECEDENCE: Readonly<Record<string, number>> = { "+": 1, "-": 1, "*": 2, "/": 2 };

/** Words and the operators that replace them, in the order of replacement. */
const WORDS: ReadonlyArray<readonly [words: RegExp, operator: string]> = [
  [/[?=!:]|\.$|\b(?:what(?:'s| is)|how much is|calculate|compute|solve|please)\b/g, ""],
  [/(?<=\d),(?=\d{3}(?!\d))/g, ""],
  [/\bplus\b/g, "+"],
  [/\bminus\b|−/g, "-"],
  [/\b(?:times|multiplied by)\b|[×·]|(?<=\d *)x(?= *\d)/g, "*"],
  [/\bdivided by\b|÷/g, "/"],
  [/(?:%| percent) of /g, "/100 * "],
  [/^ *([\d.]+) *([-+]) *([\d.]+)(?:%| percent) *$/g, "$1 * (1 $2 $3/100)"],
];

/**
 * Evaluates a question that contains only a calculation.
 * @returns undefined for any other question, and for a value that is not finite
 */
export function calculate(question: string): { expression: string; value: number } | undefined {
  if (question.length > 300 || /\d{4}-\d\d-\d\d/.test(question)) return undefined;
  const text = WORDS.reduce((text, [words, operator]) => text.replace(words, operator), question.trim().toLowerCase());
  const tokens = text.match(/\d+(?:\.\d+)?|[-+*/%()]/g) ?? [];
  if (tokens.join("") !== text.replace(/\s/g, "") || !/\d.*[-+*/%]/.test(text)) return undefined;
  const expression = tokens.join(" ").replace(/(?<=\() | (?=[)%])/g, "");
  const value = evaluate(tokens, 1);
  const isComplete = tokens.length === 0 && Number.isFinite(value);
  return isComplete ? { expression, value: Number(value.toPrecision(15)) } : undefined;
}

/**
 * Removes an expression from the start of the tokens, with operators of precedence `lowest` or higher, and evaluates
 * it.
 * @returns NaN if the tokens do not start with an expression
 */
function evaluate(tokens: string[], lowest: number): number {
  const token = tokens.shift();
  let value = token === "-" ? -evaluate(tokens, 3) : token === "(" ? evaluate(tokens, 1) : Number(token);
  if (token === "(" && tokens.shift() !== ")") return Number.NaN;
  if (tokens[0] === "%" && tokens.shift()) value /= 100;
  const next = () => PRECEDENCE[tokens[0] ?? ""] ?? 0;
  for (let precedence = next(); precedence >= lowest; precedence = next()) {
    const operator = tokens.shift();
    const right = evaluate(tokens, precedence + 1);
    if (precedence === 2) value = operator === "*" ? value * right : value / right;
    else value += operator === "+" ? right : -right;
  }
  return value;
}
