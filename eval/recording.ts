/** The recorded answer of a model to a question. */
export interface Recording {
  /** Null if the output was not kept or could not be parsed. */
  answer: string | null;
  /** 0 or 1; 1 to 10 if a model graded the answer. */
  score: number;
  cost_usd?: number;
  output_tokens?: number;
}

/** One line of a file of recorded answers. */
export interface Row {
  id: string;
  group: string;
  prompt: string;
  gold: string | null;
  /** Recordings by model; only models that ran on the question. */
  models: Record<string, Recording>;
}

/** The models that take each role. */
export interface Choice {
  /** Fast models; the cascade uses the first two. */
  weak: readonly string[];
  strong: string | undefined;
  /** Members of the vote. */
  panel: readonly string[];
  /**
   * Difficulty of the prompt. Orders the questions of the cascade's curve on which the weak models agree or disagree
   * alike. Default: random order.
   */
  difficulty?: ((row: Row) => number) | undefined;
}
