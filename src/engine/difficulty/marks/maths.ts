import type { Marks } from "./lexicon.ts";

/** Words of mathematics and of the sciences that calculate. See `Marks` for the notation. */
export const MATHS = {
  proof: `
    prove, prove that, disprove*, proof, proofs, show that, by induction, derive the, derive a, derive an, derive it
    beweis*, zeige dass, zeige, zeigen sie, weise nach, nachweis*, leite her, leiten sie, vollstandige induktion
    demontre*, demonstration*, prouve*, montre que, montrez que, montrer que, par recurrence, etablissez les, deduire
    demuestr*, demostr*, prueba que, pruebe que, probar que, por induccion, deduce la, deduzca, demonstre*, prove que
    provar que, mostre que, mostre por que, por inducao, deduza, dimostra*, provare che, per induzione, докажи*
    доказать, доказательств*, покажите что, выведите, 证明, 证：, 求证
    推导, 証明, 示せ, 示しなさい, 導出, 導け, 帰納法, 归纳法, أثبت, إثبات, برهن
    برهان, اشتق, 증명, 보이시오, 유도하시오, kanitla*, udowodnij, bewijs*`,
  calculus: `
    ∫, integral, integrals, integrate the, integrate x, integration by, derivative*, differentiate, antiderivative*
    limit of, the limit, taylor*, maclaurin, series converge*, gradient of, partial derivative*, extrema, inflection*
    integral von, integrier*, ableitung*, grenzwert*, extremstelle*, wendepunkt*, stammfunktion*, kurvendiskussion
    integrale, integrales, derivee*, primitive de, limite de, limite quand, etudiez les variations, tangente a
    derivada*, limite de la, limite cuando, extremos de, maximos y minimos, recta tangente, reta tangente
    limite quando, pontos criticos, maximos e minimos, derivata, integrali, tangente, интеграл*
    производн*, предел функц*, предел последов*, экстремум*, 积分, 导数
    求导, 极限, 极值, 最大值, 最小值, 微分, 単調, 導関数, 極限, 極値, 定積分, 接線, 切线
    تكامل, مشتق, نهاية الدالة, القيمة العظمى, المماس, 적분, 도함수, 미분
    극한, 극값, turev, pochodn*, calka`,
  ode: `
    differential equation*, ode, odes, initial value problem, pde, variation of parameters, heat equation
    wave equation, differentialgleichung*, anfangswert*, equation differentielle, equations differentielles
    probleme de cauchy, ecuacion diferencial, ecuaciones diferenciales, equacao diferencial, equacoes diferenciais
    variacao de parametros, equazione differenziale, дифференциальн* уравн*
    дифференциальное уравнение, дифференциальные уравнения
    微分方程, 微分方程式, المعادلة التفاضلية, معادلة تفاضلية
    المعادلات التفاضلية, 미분방정식`,
  advanced: `
    uniformly continuous, compact*, metric space*, hilbert*, banach*, topolog*, manifold*, homomorphism*, isomorphi*
    abelian, abelsch*, finite group*, endliche gruppe*, galois*, eigenvalue*, eigenvector*, diagonaliz*
    residue theorem, contour integral*, lagrangian, hamiltonian, lagrange*, equilibria, normal modes, dreifachintegral*
    triple integral*, orthonorm*, converges, convergence, cauchy*, weierstrass*, counterexample*, unique, uniqueness
    eindeutig*, gegenbeispiel*, gleichmassig stetig, kompakt*, konvergi*, konvergenz*, eigenwert*, stetig*
    unendlichdimension*, valeurs propres, modes propres, contre-exemple*, uniformement continu*, hypothese*, autovalor*
    contraejemplo*, contraexemplo*, converge, convergen, estabilidad, estabilidade, dimension infinita
    dimension finita, dimensao finita, dimensao infinita, espaco vetorial, espacio vectorial, por variacao
    сходит*, равномерно непрерыв*, собственн* знач*, контрпример*
    unabhangig*, black-scholes, stochastic*, martingale*, 一致连续, 一致收敛, 收敛, 特征值, 反例, 紧致
    群论, 拓扑, 唯一, 可导, 介值, 推广, 固有値, 収束, 一様連続, 留数, 位相, 積分路, 群論
    متتالية, متقاربة, متصلة, قيم ذاتية, وحيد, مثال مضاد, فضاء, 수렴
    고유값, 반례, 균등연속, expected value of, expectation of, variance of, var, asymptotic*, np-hard
    np-complete, olympiad, bounded sequence, subsequence*, zeta function, navier-stokes, maxwell*, schrodinger*
    group of order, normal subgroup, subgroup*, ring, field extension, ideal, orthogonal*, symmetric matrix
    positive definite, spectral, fourier*, laplace*, riemann*, lebesgue*, measurable, infimum, supremum, sup, inf
    bijecti*, injecti*, surjecti*, cardinality, countabl*, modular arithmetic, elliptic*, prime ideal, entropy of
    markov*, petri*, induction hypothesis, tensor*, differential form*, fixed point, contraction, series of functions
    power series, dominated, gruppe der ordnung, gruppen, normalteiler*, untergruppe*, korper, beschrankte folge
    teilfolge*, messbar*, abzahlbar*, hauptsatz*, verklemmung*, symmetrische matrix, groupe d'ordre, sous-groupe*
    suite bornee, sous-suite*, espace de hilbert, mesurable*, denombrable*, serie entiere, grupo de orden, subgrupo*
    sucesion*, subsucesion*, espacio de, medible*, numerable*, grupo de ordem, sequencia de cauchy, subsequencia*
    espaco de, подгрупп*, последовательност*, пространств*, непрерывн*
    матриц* симметр*, 对角化, 正交, 实对称, 子群, 阶群, 数列, 子列, 有界, 级数
    傅里叶, 拉普拉斯, 可测, 同构, 向量空间, 线性无关, 対角化, 直交, 部分群, 部分列
    級数, フーリエ, ラプラス, 可測, 同型, ベクトル空間, 線形独立, 群, متعامدة, زمرة
    محدودة, متسلسلة, فورييه, لابلاس, فضاء متجهي, 부분군, 수열, 유계, 급수
    푸리에, 벡터공간, theorem, theorems, entire function, holomorph*, vollstandig*, abgeschlossene
    einheitskugel, einheitskreis*, satz von, teorema*, theoreme*, теорем*, 定理, 完备, 全纯, 有界变差
    完備, 正則関数, 閉集合, مبرهنة, نظرية, دالة متصلة, 정리를, 완비, decoherence
    which-path, lagrangien*, hamiltonien*, 热传导方程`,
  algebra: `
    determinant*, matrix, system of equations, quadratic, logarithm*, complex number*, vector*, simultaneous equations
    gleichungssystem*, matrizen, polynom*, systeme d'equations, systeme lineaire, matrice*, sistema de ecuaciones
    resuelve el sistema, matriz, polinomio*, sistema de equacoes, resolva o sistema, sistema di equazioni
    система уравнений, систему уравнений, матриц*, определитель
    многочлен*, 行列式, 矩阵, 方程组, 多项式, 对数, 行列, 連立方程式, 多項式, 対数
    مصفوفة, محدد, جملة معادلات, كثيرة حدود, 행렬, 연립방정식, 다항식`,
  probability: `
    probabilit*, wahrscheinlich*, probabilidad*, вероятност*, 概率, 確率, احتمال, 확률
    expected value, erwartungswert*, esperance, valor esperado, permutation*, combinations, binomial*
    without replacement, independent and uniform, dice, wurfel*, 期望, 期待値, standard deviation, variance
    varianz, varianza`,
  mechanics: `
    velocity, acceleration, frictionless, friction, coefficient of, inclined plane, projectile, momentum, torque
    angular, spring constant, pendulum, kinetic energy, free fall, newton*, thrown*, m/s, km/h, joule*, net force
    force of, geschwindigkeit, beschleunig*, reibung*, schiefe ebene, masse, bremsweg*, pendel*, federkonstante
    drehmoment, verzogerung, vitesse, frottement*, plan incline, pendule*, ressort*, masses, quantite de mouvement
    lachee, velocidad*, aceleracion*, rozamiento, friccion, plano inclinado, resorte*, pendulo*, masa, caida libre
    aceleracao*, atrito, mola, massa, queda livre, velocita, accelerazione, attrito, скорост*, ускорен*
    трени*, маятник*, импульс*, масс*, 速度, 加速度, 摩擦, 质量为, 弹簧, 动量
    動量, 質量, 衝突, 自由落下, 小球, ばね, 振り子, 牛顿, 斜面, 光滑, سرعة, تسارع
    احتكاك, كتلت, نيوتن, قوة مقدارها, نابض, 속도, 가속도, 마찰, 질량, lift
    buoyan*, capacitor*, resistor*, voltage, circuit, wavelength, pressure of, ideal gas, mol, molar*, ph of
    centripetal, orbit, satellite, strom, spannung, widerstand, dichte, druck, auftrieb, wellenlange, courant, tension
    resistance, longueur d'onde, corriente, voltaje, resistencia, longitud de onda, corrente, tensao, densidade
    动摩擦, 電圧, 電流, 抵抗, 波長, 动能, 运动员, 电压, 电流, 电阻, 波长, 動摩擦係数
    運動方程式, تيار, جهد كهربائي, مقاومة, 전압, 전류`,
  geometry: `
    triangle*, circle, circles, circumcircle*, circumradius, inscribed, circumscribed, radius, hypotenuse, polygon*
    hexagon*, cone, sphere, cylinder, rectangle, area of, volume of, perimeter, tangent to, midpoint, orthocent*
    angle*, perpendicular, dreieck*, kreis*, umkreis*, inkreis*, kegel*, kugel*, zylinder*, flacheninhalt*, volumen
    oberflache*, umfang, winkel*, cercle*, rayon, aire, perimetre, circonscrit*, inscrit*, triangulo*, circulo*
    circunferencia*, radio, area, perimetro, hipotenusa, cono*, esfera*, angulo*, volumen de, raio, cilindro*
    triangolo, cerchio, raggio, треугольник*, окружност*, радиус*, площад*, угол
    угла, 三角形, 圆, 半径, 面积, 体积, 圆锥, 侧面积, 外接圆, 正方形, 円, 面積, 体積
    内接, 外接, 正三角形, 円錐, مثلث, دائرة, مساحة, نصف قطر, محيط, زاوية
    زوايا, وتره, 삼각형, 넓이, 반지름`,
  calculate: `
    compute, convert, umrechn*, rechne, konvertier*, converti*, convierte*, 换算, 変換, solve, evaluate the
    evaluate it, find the value, find the, find all, determine, simplify, factor*, what is the value, how far, how long
    how fast, at what time, express, equation*, remainder, integers, modulo, percentage of, round to, rounded to
    mean of, average of, mean score*, average score*, berechne*, runde auf, gerundet auf, mittelwert*, bestimme*, lose
    losen, ermittle*, vereinfache, gleichung*, wie weit, wie gross, wie lang, wie schnell, calcule*, arrondi*
    moyenne de, resous, resolvez, resoudre, determinez, simplifie*, combien de temps, calcula*, redonde*, promedio de
    resuelve*, resolver, halla*, determina*, simplifica*, ecuacion*, que distancia, con que velocidad, resolva*
    arredond*, media de, encontre, equacao, equacoes, qual e a distancia, calcola*, arrotond*, risolvi*, trova, trovare
    вычисли*, округли*, найди*, реши*, определи*, уравнен*, 计算, 四舍五入
    平均分, 求, 解方程, 化简, 方程, 求めよ, 求めて, 求めなさい, 計算, 解け, 解いて
    四捨五入, 平均点, 方程式, いくら, احسب, قرب إلى, أوجد, حل المعادلة
    جد قيمة, معادلة, 구하시오, 반올림, 계산, 구하여라, 방정식`,
} satisfies Marks;
