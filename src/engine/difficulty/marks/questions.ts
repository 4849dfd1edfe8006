import type { Marks } from "./lexicon.ts";

/** Small words that tell how a question is put. */
export const QUESTIONS = {
  choice: `
    true or false, yes or no, answer yes, answer no, answer true, letter of the correct, letter of the right
    number of the correct, which of the following, choose the correct, select the correct, choose one, multiple choice
    which option, wahr oder falsch, ja oder nein, welche der folgenden, welche aussage, vrai ou faux, oui ou non
    lequel des, laquelle des, verdadero o falso, si o no, cual de las siguientes, cual de los siguientes
    verdadeiro ou falso, sim ou nao, qual das seguintes, vero o falso, quale delle seguenti
    верно или неверно, да или нет, какое из следующих, 以下哪, 下列哪
    对还是错, 正确的是, 是非, 次のうち, 正しいもの, どれか, أي مما يلي, صح أم خطأ
    نعم أو لا, 다음 중, 옳은 것`,
  lookup: `
    who, when, where, which, whose, whom, is, are, was, were, does, did, do, can, has, have, what is the, what's the
    what was the, what year, what does, capital of, name, state the, spell, nenne, nomme, nommez, nombra, nomeie
    назови, was ist der, was ist die, was ist das, wie lautet, wer, wann, wo, welche, welcher, welches, wem, wen
    in welchem, ist, hat, war, wie heisst, hauptstadt, qui, quand, ou, quel est, quelle est, quels, quelle
    en quelle annee, est-ce que, capitale, quien, cuando, donde, cual es, en que ano, es, capital de, cual, quienes
    quem, quando, onde, qual, em que ano, chi, dove, qual e, in che anno, come si chiama, кто, когда, где
    какой, какая, какое, какие, в каком году, столиц*, 谁, 何时, 哪里, 哪个
    哪一年, 首都, 是什么, 什么时候, 多高, 誰, いつ, どこ, どの, 何ですか, 首都は
    なんという, من هو, من كتب, متى, أين, ما هي, ما هو, ما اسم, عاصمة, 누구
    언제, 어디, 무엇, 수도`,
  quantity: `
    how many, how much, what percentage, what fraction, how old, how tall, wie viel, wie viele, wieviel*, wie alt
    combien, quel est le prix, cuanto, cuanta, cuantos, cuantas, quanto, quanta, quantos, quantas, quanti, quante
    сколько, 多少, 几个, 几天, 几小时, 等于, いくつ, 何個, 何人, 何日, 何円, 何分, كم
    얼마, 몇`,
  amounts: `
    half, twice, double, triple, times, per, percent, more, less, fewer, total, left, remaining, each, every, average
    rate, third, quarter, prozent, halb*, doppelt*, mal, insgesamt, jeder, jede, jedes, durchschnitt*, drittel, viertel
    ubrig, pour cent, moitie, fois, chaque, moyenne, tiers, reste, remise*, por ciento, mitad, doble, veces, cada
    promedio, tercio, quedan, restantes, metade, dobro, vezes, media, resta, sobrou, terco, meta, doppio, volte, ogni
    половин*, вдвое, кажд*, всего, осталось, процент*, 每, 一半, 倍, 剩下
    平均, 共, 残り, 半分, 毎, 合計, ずつ, لكل, نصف, ضعف, مجموع, تبقى, 매, 절반, 남은
    평균`,
  numbers: `
    two, three, four, five, six, seven, eight, nine, ten, zwei, drei, vier, funf, sechs, sieben, acht, zehn, deux
    trois, quatre, cinq, sept, huit, dos, tres, cuatro, cinco, seis, siete, ocho, nueve, diez, dois, duas, quatro, sete
    oito, nove, dez, due, tre, quattro, cinque, sei, два, две, три, четыре, пять, шесть, 两
    三, 五, 二人, 三人, اثنان, ثلاث, أربع, خمس, 두, 세, 네`,
  conditions: `
    if, then, before, after, while, until, than, wenn, dann, nachdem, bevor, wahrend, bis, als, puis, lorsque, avant
    apres, jusqu'a, si, entonces, despues, antes, hasta, se, entao, depois, ate, allora, dopo, prima, если
    тогда, после, пока, 如果, 那么, 然后, 之后, 直到, もし, その後, まで, إذا, ثم
    بعد, حتى, 만약, 그러면`,
  statements: `
    statement, statements, suppose, assume, given that, given the, scenario, conclude, aussage*, angenommen, gegeben
    supposons, sachant que, soit, supongamos, sabiendo que, sea, suponha, sabendo que, seja, supponiamo, пусть
    предположим, 设, 假设, 已知, 且, とする, とき, ならば, لتكن, ليكن, بفرض
    علما`,
  negation: `
    except, incorrect, not true, least likely, nicht zutrifft, ausser, sauf, excepto, exceto, tranne, кроме
    不正确, 错误的是, 誤っている, ما عدا`,
  brevity: `
    short, brief, briefly, simple, simply, in one sentence, one sentence, in two sentences, in simple words, kurz
    kurze, kurzer, kurzen, einfach*, in einem satz, in zwei satzen, court, courte, courts, bref, en une phrase
    en deux phrases, corto, corta, breve*, sencill*, en dos frases, en una frase, curto, curta, em uma frase
    em duas frases, semplice, in una frase, коротк*, кратк*, прост*, 简短, 简单, 一句话, 短い
    簡単, 一言, قصيرة, قصير, باختصار, بسيط, 짧은, 간단`,
  greeting: `
    wie geht, comment ca va, ca va, como estas, como vai, come stai, как дела, 元気ですか, 잘 지내
    what's up, hi, hello, hey, good morning, good evening, good afternoon, thanks, thank you, how are you, hallo
    guten morgen, guten abend, guten tag, danke, salut, bonjour, bonsoir, merci, bonne soiree, hola, buenos dias
    gracias, que tal, ola, bom dia, boa tarde, obrigad*, tudo bem, ciao, buongiorno, grazie, привет*
    здравствуй*, спасибо, 你好, 早上好, 谢谢, 晚上好, こんにちは, おはよう
    ありがとう, こんばんは, مرحبا, صباح الخير, شكرا, كيف حالك
    السلام عليكم, 안녕, 감사`,
  role: `
    pretend, act as, role-play, roleplay, the role of, imagine, picture yourself, embody, you are a, you are an
    persona of, stell dir vor, imagine que, imagina que, tu es un, tu es une, eres un, eres una, voce e um, 扮演
    あなたは, تخيل, 역할`,
  definition: `
    what is, what's, was ist, qu'est-ce que, que es, o que e, cos'e, что такое, 什么是, とは何
    무엇인가`,
  quantifiers: `
    all, some, no, none, most, alle, einige, kein, keine, tous, toutes, certains, aucun, aucune, todos, todas, algunos
    ningun, alguns, nenhum, tutti, alcuni, nessun, все, некоторые, 所有, 有些, すべての, 모든
    كل`,
  inference: `
    does it follow, it follows that, can we conclude, premise*, syllogism*, folgt daraus
    peut-on conclure, premisa*, premissa*, se sigue, следует ли, посылк*, 推出, 前提
    결론`,
  resumes: `
    yes, ok, okay, sure, please, continue, go ahead, go on, proceed, and, but, so, also, now, what about, how about
    what if, another, again, are you sure, are you certain, ja, gerne, weiter, und, aber, jetzt, nochmal, oui, vas-y
    et, mais, maintenant, encore, adelante, sigue, continua, y, pero, ahora, sim, pode, e, agora, avanti, да
    давай, продолжай, а, и, 是的, 好的, 继续, はい, 続けて, もう一度, 계속, 그리고
    نعم, تابع`,
  refers: `
    it, its, them, these, those, he, she, his, her, their, do that, that's, is that, this one, the same, same, instead
    the first, the second, the other, above, previous, stattdessen, davon, cela, pareil, eso, isso, это, 这个
    那个, それ, これ, 그것, ذلك`,
  advice: `
    better, a way to, good idea, worth it, you, your, should i, should we, shall i, shall we, recommend*, best way, dir
    dich, kannst du, hast du, magst du, findest du, soll ich, sollten wir, toi, tu, te, vous, deberia, usted, voce
    devo, ты, вы, 你, 您, あなた, 너, أنت`,
} satisfies Marks;
