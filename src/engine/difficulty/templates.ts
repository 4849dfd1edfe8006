import { regex } from "../text/regex.ts";

/** A prompt without what callers and libraries put around the task. */
export interface Unwrapped {
  task: string;
  /** What was before and after the task, without passages to read: it may demand a form of the answer. */
  around: string;
}

/** Introductions that say nothing about the task: "Please answer the following question:", "Q:", "Tell me". */
const HEAD = regex("i")`
  ^[\s#*"]*(?:
  (?:please |kindly |bitte |por favor,? |s'il vous plaît,? )?
  (?:answer|solve|read|consider|respond to|beantworten? sie|beantworte|löse|répond(?:ez|s) à|responde|responda)
  (?: to)? (?:the|this|die|diese|la|cette|a|esta)(?: following| below| folgende| next)?
  (?: question| problem| task| prompt| frage| aufgabe| pregunta| pergunta)(?: suivante| siguiente| seguinte)?
  (?: carefully| below)?(?: and answer it)?[.:：]
  |(?:based|relying|drawing) (?:only |solely )?(?:on|upon) (?:the|this|these) (?:[a-z]{1,20} ){0,3}[a-z]{1,20},
  |(?:(?:can|could|would) you |please )?(?:please )?tell me(?=,? (?:who|what|when|where|which|how|if|whether)\b)
  |(?:hi|hello|hey)(?: there)?[,!.] (?=(?:what|who|when|where|which|how (?:many|much))\b)
  |do you (?:happen to )?know(?= (?:who|what|when|where|which|how)\b)
  |(?:q|question|instruction|task|prompt|user|human|problem|frage|aufgabe|pregunta|pergunta)\s?[:：]
  |(?:问题|問題|質問|سؤال)\s?[:：]
  |(?:请|請)?回答(?:以下|下面的?|下列)?(?:的)?问题\s?[:：]
  |次の(?:質問|問題)に答えて(?:ください)?[。:：]
  |أجب عن السؤال التالي\s?[:：]
  )\s*
`;

/** Endings that say nothing about the task: "Answer:", "Let's think step by step." */
const TAIL = regex("i")`
  (?:\s|^)[#* ]{0,6}(?:
  (?:the |your )?(?:final |helpful )?
  (?:answer|a|response|assistant|solution|antwort|réponse|respuesta|resposta|答案|回答)\s?[:：]
  |(?:let's |let us |please )?(?:think|reason|work)(?: it| this)?(?: through)? step[- ]by[- ]step\.?
  )[\s*"]*$
`;

/** The start of a line that says that the task follows: "### Task", "<question>", "[INST]", "Question:". */
const LABEL = regex("iy")`
  [ \t]{0,3}(?:
  (#{1,6}|\*\*|<|\[)[ ]?(?:(?:user|current|new|math)(?:'s)? )?
  (?:question|query|problem|task|instruction|exercise|request|prompt|user|human|inst|frage|aufgabe|pregunta|问题
  |質問)s?[ \t]*(?:[:：\]>*]{1,4}|(?=\n|$))
  |(?:user'?s? |current |new )?(?:question|query|instruction|frage|pregunta|pergunta|domanda|вопрос|问题
  |質問|q)[ ]?[:：]
  |(<<\/SYS>>)
  )
`;
/** The start of a line with an answer that is already given. */
const ANSWERED = /^[ \t]{0,3}(?:a|answer|antwort|réponse|respuesta)[ ]?[:：][ \t]{1,4}(?!let)\S/im;

/** The start of a line that says that the answer follows, and a closing tag. */
const ANSWER = regex("im")`
  ^[ \t]{0,3}[#*<\[]{1,6}[ ]?(?:your |final |the |model )?
  (?:answer|response|solution|assistant|reasoning|format|antwort|réponse|respuesta|答案|回答)
  |<\/(?:question|query|problem|task|instruction|request|prompt|user|human)|\[\/INST\]
`;

/** A passage to read, as libraries for retrieval mark it. */
const PASSAGE = /<(documents?|context|passages?|sources|search_results|background)\b[^<>\n]{0,80}>/i;

/** A sentence about the answer or the task as such, or about who answers. */
const ABOUT = regex("i")`
  \b(?:(?:the|this|these|one|an?|each|following|choice|word|maths?) (?:questions?|problems?|tasks?|exercises?)
  |your (?:answer|reasoning|thinking|thoughts?|work)|final answer|the answer|step[- ]by[- ]step|think carefully
  |be (?:brief|concise)|describes a task|completes the request)\b|^\W{0,3}you are an? 
`;
/** What such a sentence does not have: it would be the task, or demand a form of the answer. */
const TASK = regex("i")`
  [?\d"]|\b(?:my|our|yes|no|true|false|letter|options?|choices?|choose|e?mails?|customers?|essay|story|stories|code
  |function|programs?|list|extract|classify|translate|summari[sz]e)\b
`;

/** Most templates that are removed from each end. */
const MOST = 4;
/** Characters of an end in which a template is sought, and of what is around the task that are kept. */
const REACH = { end: 160, sentence: 240, around: 800 };

/**
 * Finds the task in a prompt: without passages to read, what precedes the last label such as "Question:", and
 * templates and sentences about the answer at its ends. A prompt that has nothing else is the task.
 */
export function unwrap(prompt: string): Unwrapped {
  const whole = prompt.trim();
  const { task, around } = labelled(withoutPassage(whole));
  const text = stripEnds(task);
  return { task: text, around: around + task.slice(0, Math.max(0, task.indexOf(text))) };
}

/** Leaves out passages if a question remains. Takes from the first opening tag to the last closing one. */
function withoutPassage(text: string): string {
  const open = text.includes("</") ? PASSAGE.exec(text) : null;
  const mark = open ? `</${open[1]}>` : '\n"""\n';
  const [start, end] = [open ? open.index : text.indexOf(mark), text.lastIndexOf(mark)];
  if (start < 0 || end <= start) return text;
  const rest = `${text.slice(0, start)}\n${text.slice(end + mark.length)}`.trim();
  return /[?？؟]/.test(rest) ? rest : text;
}

/** The part between the last label of a task and that of the answer. */
function labelled(text: string): Unwrapped {
  const isWhole = { task: text, around: "" };
  if (!text.includes("\n") && !/^[<[]/.test(text)) return isWhole;
  let [start, after, isPlain] = [-1, 0, false];
  for (let at = 0; at >= 0; at = text.indexOf("\n", at) + 1 || -1) {
    LABEL.lastIndex = at;
    const found = LABEL.exec(text);
    if (found) [start, after, isPlain] = [at, LABEL.lastIndex, (found[1] ?? found[2]) === undefined];
  }
  if (start < 0 || (isPlain && !isOpen(text.slice(start, after), text.slice(after)))) return isWhole;
  const rest = text.slice(after).replace(/^[\s>]{1,9}/, "");
  const between = rest.slice(0, ANSWER.exec(rest)?.index).trimEnd();
  const task = between.startsWith('"""') ? between.replaceAll('"""', "").trim() : between;
  return task === "" ? isWhole : { task, around: text.slice(0, Math.min(start, REACH.around)) };
}

/** Whether a label's text has no answer yet, unlike that of an interview. "Query:" may also introduce SQL. */
function isOpen(label: string, text: string): boolean {
  if (ANSWERED.test(text)) return false;
  return !/\bq(?:uery)?[ ]?[:：]$/i.test(label) || /[?？؟]/.test(text) || TAIL.test(text.slice(-REACH.end));
}

function stripEnds(whole: string): string {
  let text = whole;
  for (let removed = 0; removed < MOST; removed++) {
    const head = (HEAD.exec(text.slice(0, REACH.end))?.[0].length ?? 0) || sentenceAbout(text);
    if (head === 0 || head >= text.length) break;
    text = text.slice(head).trimStart();
  }
  for (let removed = 0; removed < MOST; removed++) {
    const end = text.slice(-REACH.end);
    const tail = TAIL.exec(end);
    if (!tail || tail[0].length === text.length) break;
    text = text.slice(0, text.length - end.length + tail.index).trimEnd();
  }
  return text;
}

/** Length of a first sentence that is about the answer only; 0 for none. */
function sentenceAbout(text: string): number {
  const end = text.slice(0, REACH.sentence).search(/[.!:](?:\s|$)|\n/);
  if (end < 0 || end + 1 >= text.length) return 0;
  const sentence = text.slice(0, end);
  return ABOUT.test(sentence) && !TASK.test(sentence) ? end + 1 : 0;
}
