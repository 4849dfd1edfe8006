/** What one model did with one question, as recorded. */
export interface Recording {
  /** Null where the output was not kept or could not be read. */
  answer: string | null;
  /** 0 or 1; from 1 to 10 where a judge model scored. */
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
  /** By name; only models that ran on the question. */
  models: Record<string, Recording>;
}

/** Which models stand for which role. */
export interface Choice {
  /** Fast models; the cascade asks the first two. */
  weak: readonly string[];
  strong: string | undefined;
  /** Members of the vote. */
  panel: readonly string[];
  /** How likely the strong model is to do better, by the prompt alone; orders the cascade's curve where agreement does not. Absent: random order. */
  difficulty?: ((row: Row) => number) | undefined;
}
