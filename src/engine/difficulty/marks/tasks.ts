import type { Marks } from "./lexicon.ts";

/** Words that say what is to be made: a program, a text, a translation, data from a text. */
export const TASKS = {
  program: `
    function, functions, program, programs, script, algorithm*, class, code, query, sql, python, javascript, typescript
    java, rust, golang, c++, c#, php, ruby, kotlin, swift, bash, html, css, regex, regular expression, linked list
    binary tree, array, unit test*, api, parser, compiler, data structure*, website, web page, library in, queue in
    hash map, go service, dockerfile, funktion*, programm, methode, skript, datenstruktur*, datenbank*, abfrage
    java-methode, fonction python, fonction javascript, une fonction qui, programme en, programme qui, script python
    requete sql, una funcion en, una funcion que, programa en, programa que, algoritmo*, consulta sql
    estructura de datos, codigo, uma funcao em, uma funcao que, um programa, programa em, consulta, funzione in
    funzione che, programma in, programma che, функцию на, программу на, алгоритм*
    код на, скрипт*, 一个函数, 程序, 代码, 算法, 脚本, 数据结构, 单例模式, 関数を書
    pythonの, プログラム, コード, アルゴリズム, 実装, دالة بلغة, برنامج, بايثون
    خوارزمية, كود, جافا, 함수를 작성, 프로그램, 코드, 알고리즘, 파이썬, react, node.js
    django, spring boot, pandas, numpy, docker, kubernetes, linux, bash script, powershell, excel formula
    spreadsheet formula, css grid, in go, implementation, makefile, endpoint*, web server, chatbot, scraper`,
  source: `
    \`\`\`, def, console.log, #include, public static, public class, printf, print(, println, assert f, elif
    select distinct, const, useeffect, async function`,
  make: `
    write, implement, develop, create, build, make, draft, compose, craft, generate, add, complete the, convert this
    so that it, that returns, which returns, should return, to return, schreib*, implementier*, erstell*, entwickl*
    verfass*, ecris, ecrivez, ecrire, implemente*, cree, creez, developpe*, redige*, escrib*, implementa*, crea
    desarrolla*, redacta*, escrev*, crie, desenvolva, redija, scrivi*, напиши*, реализуй*, создай*
    写, 编写, 实现, 創作, 创建, 書いて, 書け, 作成, 実装して, اكتب, أنشئ, نفذ, برمج
    작성, 구현, 만들어`,
  debug: `
    bug, bugs, debug*, fix this, fix the, fix it, refactor*, does not work, doesn't work, not working, exception
    stack trace, traceback, never end*, infinite loop, wrong result, error in, optimize, optimise, code review
    segfault, memory leak*, crash*, deadlocks, aba problem, fehler, behebe*, behebt, funktioniert nicht
    doppelte zeilen, stürzt ab, optimiere*, erreur*, corrige le bug, bogue*, ne fonctionne pas, error en, no funciona
    depura*, corrige el error, erro no, nao funciona, corrija o erro, errore, non funziona, ошибк*
    не работает, 报错, 调试, 修复, 错误在, 优化, バグ, エラー, 修正, 動かない
    خطأ في الكود, لا يعمل, أصلح, 버그, 오류, 디버그, 수정, why does my, why is my
    why doesn't, why won't, overflow*, undefined is not, null pointer, nullpointer*, returns null, off by one
    keeps failing, throws, warum funktioniert mein, warum lauft mein, warum gibt mein, pourquoi mon, pourquoi ma
    por que mi, por que meu, por que minha, perche il mio, почему мой, почему моя, 为什么我的
    なぜ私の, لماذا لا, 왜 제`,
  result: `
    return, returns, returned, print, prints, printed, output, outputs, result, results, resulting, evaluate
    evaluates to, evaluating, value, yield, yields, comes out, come out, appears, screen, assertion, the test passes
    test pass, blank, missing value, write down, write the output, write the result, write the value, write the literal
    write only, question marks, give for, function give, code give, literal, what does f, ausgabe, gibt, ergibt, zuruck
    heraus, ergebnis, wert, affiche, renvoie, retourne, sortie, resultat, vaut, imprime, salida, devuelve, retorna
    saida, stampa, restituisce, вывед*, верн*, напечата*, результат*, 输出, 返回
    运行结果, 结果, 出力, 返す, 戻り値, 実行結果, 何が表示, 結果, ناتج, يطبع
    مخرجات, يرجع, 출력, 반환, 실행 결과, 결과`,
  extraction: `
    extract*, pick out, pull out, list all the, list every, classify, categoriz*, categoris*, named entities
    fill in the fields, as json, in json, into json, as csv, valid json, json format, identify all, identify the named
    extrahier*, nenne alle, liste alle, finde alle, ordne zu, klassifiziere die, als json, als tabelle, stelle alle
    extrai*, extrayez, releve*, identifie*, classe les, liste tous, liste toutes, en json, au format json, extrae*
    identifica*, clasifica*, enumera*, lista todos, lista todas, identifique*, classifique*, liste todos, liste todas
    em json, estrai*, elenca tutti, classifica*, извлеки*, выдели*, выпиши*
    классифицируй*, перечисли все, в формате json, 提取, 抽取, 找出
    列出所有, 分类, 抜き出, 抽出, 分類し, 列挙し, استخرج, صنف, اذكر جميع, 추출
    찾아, 분류`,
  translation: `
    translat*, ubersetz*, tradui*, traduc*, traduz*, tradur*, переведи*, перевод, 翻译, 译成, 翻訳
    英語に訳, 訳して, ترجم, 번역`,
  text: `
    email*, e-mail*, story, stories, poem*, blog*, letter, letters, paragraph*, post, speech*, article*, headline*
    message, caption*, summary, summarize*, summarise*, sentence, sentences, slogan*, song, lyrics, cover letter
    proofread*, rewrite, rephrase*, paraphrase*, polite, formal, tone, recipe, joke*, toast, title, titles, haiku
    geschichte uber, gedicht*, briefe, einen brief, absatz, rede, artikel, uberschrift*, nachricht*, zusammenfass*
    fasse, satz, umformul*, formuliere*, hoflicher, witz*, rezept*, courriel*, histoire, lettre, texte, phrase, reecris
    corrige, orthographe, blague*, recette*, correo*, cuento*, carta, texto, parrafo*, frase, reescrib*, mensaje*
    saludo*, resum*, chiste*, receta*, conto, mensagem, reescreva, piada*, receita*, lettera, tema su, racconto, poesia
    riassum*, riscrivi*, письмо, рассказ*, стихотворение, перескажи*
    перефразируй*, шутк*, рецепт*, 邮件, 故事, 诗, 信, 总结, 摘要, 改写, 文章
    笑话, 句子, メール, 物語, 詩を, 手紙, 要約, 書き直, 冗談, رسالة, مقال, قصة
    قصيدة, لخص, أعد صياغة, نكتة, جملة, 이메일, 편지, 이야기, 요약, 글을`,
  essay: `
    essay*, word essay, 500 words, 600-word, 800 words, 1000 words, article about, aufsatz*, erorterung*, dissertation*
    ensayo*, redacao, saggio, сочинение, эссе, 作文, 论文, 议论文, 論文, 小論文, 字程度
    字以上, مقالا, 에세이, 논술`,
  science: `
    neural network*, transformer*, attention, quantum*, relativity, entropy, enzym*, mitochond*, genome*
    semiconductor*, encryption, tcp, protocol*, kernel, monetary policy, fiscal policy, supply and demand, elasticity
    black hole*, plate tectonics, immune system, evolution*, thermodynamic*, redox, equilibrium, neuronale* netz*
    quanten*, relativitatstheorie, thermodynamik, geldpolitik, immunsystem, verschlusselung*, reseau de neurones
    quantique*, relativite, politique monetaire, red neuronal, redes neuronales, cuantic*, relatividad, termodinamica
    politica monetaria, rede neural, redes neurais, quantic*, relatividade, нейронн*, квантов*
    термодинамик*, 神经网络, 量子, 相对论, 热力学, 货币政策, 加密, 免疫, 化学平衡
    ニューラルネットワーク, 相対性理論, 熱力学, 金融政策, 暗号, الشبكات العصبية
    الكم, النسبية, الديناميكا الحرارية, التشفير, المناعة, 신경망, 양자
    상대성, 열역학`,
  explain: `
    explain*, what are the, why, how does, how do, how can, suggest*, outline, propose*, tips, ideas, insights
    what happens, mean for, does this mean, meaning of, what risks, advise, advice, elaborate, give an overview
    erklar*, beschreib*, warum, wieso, weshalb, wie funktioniert, schlage*, was bedeutet, was macht, woran liegt
    expliqu*, decri*, pourquoi, comment fonctionne, que signifie, quels sont les, explic*, describ*, por que
    como funciona, que significa, propon*, cuales son las, sugiere*, riesgos, descrev*, o que significa, quais sao
    sugira, spiega*, descrivi*, perche, come funziona, cosa significa, объясни*, опиши*, почему
    как работает, что означает, предложи*, 解释, 说明, 为什么, 介绍, 描述
    怎么样, 如何, 什么意思, 风险, 说明する, 説明, なぜ, どうして, 意味, 理由を, 述べよ
    提案, اشرح, لماذا, صف, وضح, ماذا تعني, اقترح, بيان, 설명, 왜, 의미`,
} satisfies Marks;
