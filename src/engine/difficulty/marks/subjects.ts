import type { Marks } from "./lexicon.ts";

/** Words of law, medicine, finance, systems and puzzles, and those that ask for a comparison or for depth. */
export const SUBJECTS = {
  law: `
    clause*, tenant*, landlord*, lease, liabilit*, liable, damages, statut*, plaintiff*, defendant*, breach*
    contract law, provisions, terminat*, indemnif*, indemnity, negligen*, burden of proof, claims, defences, defenses
    exclusion, warrant*, supplier*, agreement, legal, legally, jurisdiction*, unlawful*, lawful*, klausel*, mieter*
    vermieter*, mietvertrag*, vertrag*, anspruch*, schadensersatz*, haftung*, bgb, stgb, hgb, strafbar*, wirksam*
    gutachterlich*, kundig*, §, gesetz, rechtlich*, urteil*, abs, verkehrspflicht*, bailleur*, locataire*, preneur
    contrat*, contractuel*, responsabilite*, jurisprudence, code du travail, code civil, licencie*, indemnite*, recours
    vice cache, vices caches, charge de la preuve, clausula*, arrendador*, arrendatario*, indemniza*, responsabilidad*
    abusiva, demandad*, jurisprudencia, incumplimiento*, resolver el contrato, codigo civil, despido*, impago
    locatario*, locador*, indeniza*, rescis*, nao concorrencia, empregado*, clausola, responsabilita, договор*
    ответственност*, пункт договора, убытк*, закон*, 条款, 合同, 民法典
    违约, 赔偿, 责任, 解除合同, 不可抗力, 情势变更, 法律, 侵权, 条文, 契約, 条項
    損害賠償, 責任, 解除, 民法, 判例, العقد, عقد, بند, المسؤولية, القانون
    تعويض, الدفوع, شرط الإعفاء, المستأجر, المؤجر, ضرر, 계약, 조항
    손해배상, 책임, 민법, gdpr, proportionality, case law, constitution*, employer*, employee*, ecthr
    consent of, trademark*, copyright*, patent*, litigation, tort, tortious, contractual*, arbitration, offence, sue
    custody, inheritance, fiduciary, antitrust, privacy law, eu law, dsgvo, verfassung*, grundgesetz, arbeitgeber*
    arbeitnehmer*, gmbh, urheberrecht*, erbe, erben, testament, klage, verjahr*, notwehr*, rgpd, loi, libertes
    droit de, droit du, droit a, tribunal, employeur*, salarie*, heritier*, succession, nullite, delit*, constitucion*
    ley, derecho*, empleador*, trabajador*, herencia, herederos, demanda, nulidad, juicio, constituicao*, lei, direito*
    heranca*, herdeiro*, crime, acao judicial, nulidade, consumidor, costituzion*, diritto, legge, tribunale
    конституц*, статья, статьи, суд, наследств*, работодател*, 宪法
    劳动法, 劳动合同, 用人单位, 公司法, 继承, 诉讼, 举证, 著作权, 刑法, 正当防卫, 租客
    房东, 会社法, 取締役, 義務違反, 立証責任, 憲法, 労働法, 解雇, 相続, 訴訟, 著作権
    正当防衛, 賃借人, 賃貸人, 借地借家法, الدستور, صاحب العمل, العامل
    الإيجار, محكمة, دعوى, ميراث, قانون العمل, جريمة, 헌법, 근로자, 해고
    상속, 소송, gesellschafter*, notariell*, beurkund*, formmangel*, ruckabwick*, abwickl*, geschaftsanteil*
    gekundigt*, demite, demissao*, estabilidade provisoria, tst, clt, prud'hom*, restitution, a minor, english law
    german law, french law, common law, consideration of, misrepresentation, duty of care, causation in law
    geschaftsfahig*, minderjahrig*, bereicherung*, anfechtung*, gefahrubergang*, mineur, mineurs, enrichissement
    nullidad, menor de edad, menor de idade, 借地権, 対抗力, 未成年, 不当得利, 取消権, القاصر
    미성년`,
  medicine: `
    diagnos*, differential, patient*, symptom*, treatment*, therap*, dose, dosage, mg, syndrome*, warfarin
    interactions, tsh, ecg, presents with, presented with, complains of, chest pain, cough, vomiting, infarct*, mg/dl
    fever, anemia, anaemia, chronic, acute, diabet*, hypertens*, antibiotic*, contraindicat*, prognos*, behandl*
    fieber, beschwerden, medikament*, blutdruck*, krankheit*, fievre, traitement*, souffle cardiaque, hemoculture*
    anemie, bilan, paciente*, sintoma*, tratamiento*, fiebre, tratamento*, febre, farmaco*, пациент*
    симптом*, лечени*, диагноз*, 患者, 症状, 诊断, 治疗, 药物, 診断, 治療, 副作用
    مريض, تشخيص, أعراض, علاج, 환자, 진단, 치료, side effect*, drug, drugs, ibuprofen, aspirin
    insulin, nebenwirkung*, wirkstoff*, effets secondaires, medicament*, efectos secundarios, efeitos colaterais, 药
    薬, 投与, آثار جانبية, دواء, 부작용, 약물`,
  finance: `
    interest rate*, mortgage*, annuit*, net present value, npv, irr, compound interest, portfolio*, option price*
    volatility, dividend*, bond, bonds, depreciation, cash flow*, balance sheet, valuation, monthly payment*, amortiz*
    a year over, hedge, hedging, zinssatz*, zinsen, zinsfuss*, kredit*, rendite*, rate uber, barwert*, anleihe*
    investition*, abschreib*, taux d'interet*, emprunt*, actualis*, obligation*, chiffre d'affaires, rentabilite*
    tipo de interes, tasa de interes, interes compuesto, hipoteca*, bono, bonos, valor presente, valor actual
    flujo de caja, taxa de juros, juros, financiamento, fluxo de caja, emprestimo*, valor presente liquido, tasso*
    процентн*, кредит*, облигац*, 利率, 股利, 内在价值, 现值, 债券, 贷款, 回报率
    複利, 利子, 現在価値, 債券, 利回り, ローン, فائدة, قرض, سند, عائد
    القيمة الحالية, 이자율, 채권, 대출, 현재가치, per annum, annual rate, yearly interest
    discount rate, capm, wacc, inflation rate, exchange rate, break-even, breakeven, roi, zinseszins*, jahrlich*
    effektivzins*, gewinnschwelle*, interets composes, % par an, taux annuel, au taux de, seuil de rentabilite
    interes anual, tasa anual, punto de equilibrio, juros compostos, ao ano, taxa anual, ponto de equilibrio
    сложные проценты, годовых, 复利, 年利率, 净现值, 盈亏平衡, 投资回报
    複利計算, 年利, 正味現在価値, 損益分岐点, الفائدة المركبة, سنويا
    صافي القيمة الحالية, نقطة التعادل, 복리, 연이율`,
  compare: `
    compare, compares, comparing, comparison*, contrast*, trade-off*, tradeoff*, pros and cons, differences between
    strengths and weaknesses, advantages and disadvantages, arguments on each side, weigh the, weigh up, versus
    vergleich*, vor- und nachteile, vorteile und nachteile, unterschied*, abwag*, gegenuber, widerspruch*, comparez
    comparer, avantages et, compromis, differences entre, compara*, ventajas y desventajas, diferencias entre
    pros y contras, vantagens e desvantagens, diferencas entre, confronta*, vantaggi e svantaggi, differenze tra
    сравни*, преимущества и недостатки, плюсы и минусы
    различия между, 比较, 对比, 优缺点, 异同, 权衡, 利弊, 比較, 長所, 短所
    メリットとデメリット, トレードオフ, 違いを, 相違, قارن, مقارنة
    المزايا والعيوب, الفرق بين, المفاضلة, 비교, 장단점, 차이점
    difference between, weighing, for and against, gegenuberstell*, en pesant, peser le, pesez, difference entre
    diferencia entre, diferenca entre, differenza tra, разница между, 区别, 差异, 違いは, 差は
    الفرق, من حيث, 차이`,
  depth: `
    in depth, in-depth, in detail, in full detail, detailed, thorough*, rigorous*, comprehensiv*, justify, discuss
    analyse, analyze, analysis of, argue, argue which, every step, every assumption, derive*, reconstruct, assess
    state every, stability, explain why, each step, step-by-step, all possible, verify, ausfuhrlich*, detailliert*
    grundlich*, rigoros*, kritisch*, begrunde*, diskutiere*, analysiere*, erortere*, klassifizier*, prufe, en detail
    approfondi*, rigoureus*, critique, justifie*, discute*, analysez, argument*, evaluez, expliquez pourquoi
    en profundidad, en detalle, detallad*, rigurosa*, justific*, analiza*, evalua*, em profundidade, em detalhe*
    detalhad*, rigor, justifique*, discuta*, analise, analisar, avalie, in dettaglio, critica*, giustifica*, discuti
    analizza*, подробно, обоснуй*, проанализируй*, обсуди*, критическ*
    详细, 深入, 严格, 分析, 论证, 说明理由, 讨论, 评价, 批判, 并说明, 详尽, 詳しく, 詳細
    厳密, 論じ, 分析せよ, 考察, 批判的, すべて求めよ, بالتفصيل, بعمق, ناقش, حلل
    برر, نقدي, اشرح بالتفصيل, 자세히, 논하시오, 분석, 논의, 엄밀, consider the
    limits of the, limitations of, explain how you, grenzen des, grenzen der, wage ab, gehe auf, limites du
    limites de la, analyser, limites del, limitaciones de, limites do, оцени*, рассмотри*, 评估, 探讨
    局限, 論じなさい, 検討, 評価, 限界, تحليل, قيم, حدود النموذج, 검토, 평가하`,
  design: `
    design, designing, redesign, architect, architecture, devise, schema, migration plan, plan a, plan the, plan my
    plan our, business plan, roadmap, strategy, refactor the design, lesson plan, study plan, itinerary, entwirf
    entwerfe*, entwurf*, architektur*, konzipier*, plane einen, plane eine, erstelle einen plan, strategie, concevez
    concevoir, concois, conception, planifie*, disena*, disene, diseno*, arquitectura, planifica*, elabora*, estrategia
    projete*, projetar, desenhe a arquitetura, arquitetura, elabore*, planeje*, plano de, progetta*, architettura
    pianifica*, спроектируй*, разработай*, архитектур*, составь план
    составьте план, 设计, 架构, 规划, 方案, 策略, 設計, アーキテクチャ, 計画を立て
    立案, صمم, تصميم, بنية, خطة, 설계, 아키텍처, 계획, how would you build
    how would you design, how would you structure, model the, propose an architecture, rollout, roll-out, blueprint
    curriculum, wie wurdest du, wie wurden sie, modellier*, studienplan*, comment concevoir, comment construire
    plan d'etudes, modelise*, como disenarias, como construirias, modela, como voce projetaria, modele
    plano de estudos, 如何设计, 如何构建, 制定, 计划, どのように設計, どう設計, 計画
    كيف تصمم, كيف تبني, ضع خطة, 어떻게 설계, 계획을, trainingsplan*, zeitplan*, projektplan*
    reiseplan*, lernplan*, ernahrungsplan*, plan d'entrainement, plan de entrenamiento, plano de treino, training plan
    meal plan, 训练计划`,
  scale: `
    distributed*, multi-region, region, fault-toleran*, fault toleran*, failover, replication, consistency, clock skew
    sharding, throughput, latency, scalab*, high availab*, concurren*, lock-free, deadlock*, race condition*
    thread-safe, mutex*, linearizab*, microservice*, million users, million requests, zero-downtime, zero downtime
    memory order, goroutine*, load balanc*, atomic*, eventual*, verteilt*, konsistenz*, ausfall*, hochverfugbar*
    verfugbarkeit*, latenz*, rechenzentrum*, nebenlaufig*, skalier*, distribue*, tolerance aux pannes
    tolerant aux pannes, coherence, disponibilite, millions d'utilisateurs, de bout en bout, synchronisation
    distribuid*, consistencia, disponibilidad, millones de usuarios, peticiones por segundo, interbloqueo*
    particionado, tolerante a fal*, tolerancia a fal*, disponibilidade, milhoes de usuarios, particionamento
    distribuit*, tolleran*, распредел*, отказоустойч*, согласованн*, масштаб*
    分布式, 高并发, 一致性, 容错, 高可用, 千万级, 故障恢复, 超卖, 线程安全, 死锁, 分散
    耐障害性, 整合性, 可用性, 大規模, 順序保証, 億件, موزع, يتحمل, التوافر
    الاتساق, مركز بيانات, تعطل, 분산, 일관성, 가용성, 대규모, 동시성, replicated
    data centre, data center, stays available, conflicts are merged, consensus, raft, paxos, leader election
    log replication, snapshots, network partition*, partition tolerance, consistency model, exactly once, exactly-once
    idempoten*, sharded, crdt*, event sourcing, backpressure, petabyte*, terabyte*, requests per second, hot partition*
    multi-tenant, real-time, rechenzentren, anfragen pro sekunde, konsens*, replikation*, replizier*, centre de donnees
    centres de donnees, requetes par seconde, replique*, partitionnement, replicacion, replicad*, centro de datos
    requisicoes por segundo, replicacao, centro de dados, milhoes de, запросов в секунду
    репликац*, консенсус*, дата-центр*, 主从复制, 共识, 分库分表, 海量, 亿级
    百万级, 每秒, 微服务, 缓存穿透, 多机房, 数据中心, レプリケーション, 合意, 毎秒
    マイクロサービス, 障害, 同時実行, デッドロック, مراكز البيانات
    طلب في الثانية, ملايين المستخدمين, النسخ المتماثل, 복제, 합의, 초당
    장애, 遅延, 復旧, レイテンシ, 延迟, 吞吐, latence, latencia, redundan*, echtzeit*, temps reel
    tiempo real, tempo real, message queue*, redeliver*, 消息队列`,
  puzzle: `
    next to, lives in, live in, left of, right of, sits, sit, seated, opposite, neighbour*, neighbor*, knight, knights
    knave*, liar*, lies, tells the truth, each own, each with a different, taller than, shorter than, older than
    different colour*, who owns, who keeps, ritter*, schurke*, lugt, lugen, lugner*, wohnt neben, sitzt neben, sitzen
    neben, links von, rechts von, vom gleichen typ, chevalier*, menteur*, habite a cote, a cote de, a gauche de
    a droite de, assis, mas alto que, mas alta que, mas baja que, mas bajo que, al lado de, a la izquierda
    a la derecha, mentiroso*, caballero*, se sienta, ao lado de, a esquerda, a direita, senta, рыцар*, лжец*
    сидит рядом, слева от, справа от, 隔壁, 相邻, 左边, 右边, 说谎, 说真话
    骑士, 隣, 正面, 円卓, 右隣, 左隣, 座る, 嘘つき, بجانب, يجلس, يسكن, إلى يمين
    إلى يسار, كاذب, 옆에, 거짓말, lives in the, owns the, owns a, drinks, drunk in, smokes, smoked in
    smoker, keeps, the middle house, first house, in the middle, immediately to, seated next, always lie, always tell
    exactly one of, trinkt, wohnt in, wohnt im, raucht, halt einen, besitzt, im mittleren, genau einer
    immer die wahrheit, habite dans, boit, possede, vive en la, vive en el, bebe, fuma, posee, mora na, bebe cerveja
    mora no, exatamente um, exactamente uno, живет в, пьет, курит, 住在, 喝, 养, 抽
    只有一个人, 恰好一个, 住んでいる, 飲む, 飼って, 正直者, يعيش في, يشرب, يملك
    산다, 마신다, may not share, must be with, unless, valid assignment*, all assignments, assigned to
    darf nicht neben, muss neben, ne peut pas etre, no puede estar, nao pode ficar, 不能相邻, 必须
    隣り合わない, لا يجوز أن, speaks truly, always falsely, answers falsely, yes-no questions
    their identities, determine who, wer lugt, qui ment, quien miente, quem mente, 谁在说谎, 誰が嘘`,
} satisfies Marks;
