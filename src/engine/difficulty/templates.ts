import { regex } from "../text/regex.ts";

/** Introductions that say nothing about the task: "Please answer the following question:", "Q:", "### Instruction". */
const HEAD = regex("i")`
  ^[\s#*"]*(?:
  (?:please |kindly |bitte |por favor,? |s'il vous plaît,? )?
  (?:answer|solve|read|consider|respond to|beantworten? sie|beantworte|löse|répond(?:ez|s) à|responde|responda)
  (?: to)? (?:the|this|die|diese|la|cette|a|esta)(?: following| below| folgende| next)?
  (?: question| problem| task| prompt| frage| aufgabe| pregunta| pergunta)(?: suivante| siguiente| seguinte)?
  (?: carefully| below)?(?: and answer it)?[.:：]
  |you are an? (?:helpful|useful|friendly)(?: ai)? assistant\.
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
  (?:the )?(?:final )?
  (?:answer|a|response|assistant|solution|antwort|réponse|respuesta|resposta|答案|回答)\s?[:：]
  |(?:let's |let us |please )?(?:think|reason|work)(?: it| this)?(?: through)? step[- ]by[- ]step\.?
  )[\s*"]*$
`;

/** Most templates that are removed from each end. */
const MOST = 4;
/** Characters of an end in which a template is sought. */
const REACH = 160;

/**
 * A prompt without the templates that benchmarks and libraries put before and after it, and without white space at its
 * ends.
 */
export function stripTemplates(prompt: string): string {
  let text = prompt.trim();
  for (let removed = 0; removed < MOST; removed++) {
    const head = HEAD.exec(text.slice(0, REACH))?.[0].length ?? 0;
    if (head === 0 || head === text.length) break;
    text = text.slice(head);
  }
  for (let removed = 0; removed < MOST; removed++) {
    const end = text.slice(-REACH);
    const tail = TAIL.exec(end);
    if (!tail || tail[0].length === text.length) break;
    text = text.slice(0, text.length - end.length + tail.index).trimEnd();
  }
  return text;
}
