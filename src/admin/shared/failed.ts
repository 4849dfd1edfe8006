/** SQL condition for requests without an answer, as the rollups count them. */
export const FAILED = "(not is_answered(outcome, streamed))";
