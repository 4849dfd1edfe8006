/** Most rows of one file. */
const MOST_ROWS = 100_000;

/** Receives the number of rows loaded so far. */
export type Progress = (rows: number) => void;

/**
 * Loads the rows of a list page by page, for a file.
 * @param load one page by its token; `next` is empty on the last one
 * @returns at most 100,000 rows; `isCut` says that there are more
 */
export async function allPages<T>(
  load: (token: string) => Promise<{ rows: readonly T[]; next: string }>,
  progress: Progress,
): Promise<{ rows: readonly T[]; isCut: boolean }> {
  const rows: T[] = [];
  let token = "";
  do {
    const page = await load(token);
    rows.push(...page.rows);
    token = page.next;
    progress(rows.length);
  } while (token && rows.length < MOST_ROWS);
  return { rows: rows.slice(0, MOST_ROWS), isCut: token !== "" || rows.length > MOST_ROWS };
}

/** Most pages without a row to load at once. */
const STEPS = 10;

/**
 * Loads the next page that has rows. A page of a list that searches a bounded part at once may have none, and still
 * have a next one.
 * @returns the last of ten pages if none of them has rows
 */
export async function pageWithRows<P extends { nextPageToken: string }>(
  load: (token: string) => Promise<P>,
  rowsOf: (page: P) => readonly unknown[],
  pageToken: string,
): Promise<P> {
  let token = pageToken;
  for (let step = 1; ; step++) {
    const page = await load(token);
    token = page.nextPageToken;
    if (rowsOf(page).length > 0 || !token || step === STEPS) return page;
  }
}
