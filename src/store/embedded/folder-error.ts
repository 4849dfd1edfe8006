/** What Postgres and initdb say when the disk is full, or the user's part of it. */
const FULL = /No space left on device|Check free disk space|Disk quota exceeded/;

/** An error that is due to the folder DATA_DIR, as one that says so and what to do. Any other error as it is. */
export function folderError(dataDir: string, error: Error & NodeJS.ErrnoException): Error {
  const { code, syscall, path, message } = error;
  const reason = FULL.test(message) ? "ENOSPC" : code && syscall && code;
  if (!reason) return error;
  return new Error(
    `DATA_DIR cannot be used: ${reason}${path ? ` at ${path}` : ""}. ` +
      `Make ${dataDir} a folder that this user can write, with free space, set DATA_DIR to another one, ` +
      "or set DATABASE_URL.",
    { cause: error },
  );
}
