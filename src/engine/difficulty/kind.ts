import { regex } from "../regex.ts";

/**
 * The kind of answer that a prompt asks for. `closed`, `maths`, `output` (what a given program returns or prints, as a
 * literal) and `extraction` have one right answer, so answers of several models can be compared. `code` is a program to
 * write, explain or repair; `prose` any other text, also a proof.
 */
export type Kind = "closed" | "code" | "output" | "maths" | "prose" | "extraction" | "conversation";

/** Rules in order of precedence. The first one that matches gives the kind. */
const RULES: ReadonlyArray<[kind: Kind, pattern: RegExp]> = [
  ["closed", /(?:^|\n)[ \t]{0,8}\(?A[.):][ \t][^\n]*\n[ \t]{0,8}\(?B[.):][ \t]/],
  [
    "closed",
    regex("i")`
      \b(true or false|yes or no|answer (yes|no|true|false)|(letter|number) of the (right|correct)
      |which of the following)\b
    `,
  ],
  [
    "output",
    regex("is")`
      \b(what (does|do|will|would|is|are)\b.{0,60}\b(print(ed|s)?|output|returns?|log(ged|s)?|evaluates? to)\b
      |complete the assertion|predict the (output|result)).*(\bdef \w|\bfunction\b.*[{]|\breturn\b|print\(
      |console\.log|=>)
    `,
  ],
  ["code", /```|\b(def|class|const|import|public static) \w+|#include|\bSELECT\b.+\bFROM\b/],
  [
    "code",
    regex("is")`
      \b(write|implement|develop|create|fix|debug|refactor|optimi[sz]e|review)\b.{0,60}\b(function
      |program|script|class|code|algorithm|query|queue|stack|parser|server|library|unit tests?
      |regex|website|api)\b
    `,
  ],
  [
    "code",
    regex("is")`
      \b(python|javascript|typescript|java|rust|golang|sql|html|css|c\+\+|bash)\b.{0,80}\b(code
      |function|program|script|error|bug)\b
    `,
  ],
  [
    "extraction",
    regex("i")`
      \b(extract|pick out|pull out|list all|identify (the|all)|classify|categori[sz]e
      |named entities|fill (in )?the fields)\b|\b(as|in|into|return|output) (a |an |valid )?(json
      |csv)\b
    `,
  ],
  [
    "prose",
    regex("is")`
      \b(write|draft|compose|rewrite|edit|proofread|translate|summari[sz]e)\b.{0,80}\b(emails?
      |essays?|story|poems?|blog|letters?|paragraphs?|posts?|speech|articles?|headlines?|texts?
      |summary|sentences?|following)\b
    `,
  ],
  [
    "maths",
    regex("i")`
      \b(calculate|compute|solve|prove|integral|derivative|equation|probability|remainder
      |how many integers|simplify|factori[sz]e)\b
    `,
  ],
  ["maths", /\d\s*[+*/^=×÷]\s*\(?[\dx]|[a-z]\s*\^\s*\d|\\(frac|sqrt|int|sum)\b/],
  ["maths", /^(?=[^\d]*\d)(?=[^?]*\?).*?\b(how (many|much|long|far|old|fast|tall)|what (percentage|fraction))\b/is],
  [
    "prose",
    regex("i")`
      \b(explain|describe|discuss|compare|outline|analy[sz]e|suggest|propose|essay|elaborate
      |provide insights|pros and cons)\b
    `,
  ],
  [
    "closed",
    regex("i")`
      ^\s*(who|when|where|which|is|are|was|were|does|do|did|can|has|have|how (many|much|old|far
      |tall))\b[^?\n]{3,160}\?\s*$
    `,
  ],
  [
    "closed",
    regex("i")`
      ^\s*what('s| is| was| are| were) the (capital|name|number|year|date|population|symbol
      |currency|author|height|largest|smallest)\b
    `,
  ],
  ["prose", /^\s*(why|how|what)\b/i],
];

/** The kind of a prompt by fixed rules on its text; `conversation` where no rule matches. */
export function kindOf(text: string): Kind {
  return RULES.find(([, pattern]) => pattern.test(text))?.[0] ?? "conversation";
}
