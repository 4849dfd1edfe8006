import { isUnavailable, LOGIN_REFUSED, type Pool } from "./pool.ts";

/** Oldest version of Postgres that the service supports, as `server_version_num`. */
const MIN_VERSION = 150_000;

/** Encodings in which every text can be stored. SQL_ASCII stores the bytes that are sent. */
const ENCODINGS: readonly string[] = ["UTF8", "SQL_ASCII"];

/**
 * Opens a connection and checks the version of the server, the encoding of the database, the form of dates and arrays,
 * and the isolation of transactions.
 * @throws Error that says what to do when the server refuses the connection, is too old or set otherwise; an error of
 *   `isUnavailable`
 */
export async function checkServer(pool: Pool): Promise<void> {
  const [row] = await pool
    .query<{ version: number; encoding: string; datestyle: string; nulls: string; isolation: string }>(
      `select current_setting('server_version_num')::int as version, current_setting('server_encoding') as encoding,
         current_setting('datestyle') as datestyle, current_setting('array_nulls') as nulls,
         current_setting('default_transaction_isolation') as isolation`,
    )
    .catch((error: Error) => {
      if (isUnavailable(error) && !LOGIN_REFUSED.test(error.message)) throw error;
      throw new Error(refusal(error), { cause: error });
    });
  if (row && row.version < MIN_VERSION) {
    const version = Math.floor(row.version / 10_000);
    throw new Error(`DATABASE_URL names a Postgres ${version}. Chorus needs Postgres 15 or newer.`);
  }
  if (row && !ENCODINGS.includes(row.encoding)) {
    throw new Error(
      `The database has the encoding ${row.encoding}, which lacks most characters. Create another one, and name it ` +
        "in DATABASE_URL: create database chorus encoding 'UTF8' template template0",
    );
  }
  // A setting of each connection would not get through a pooler. The driver reads no other form of dates.
  if (row && !row.datestyle.startsWith("ISO")) {
    throw new Error(
      `The database has datestyle "${row.datestyle}", whose dates Chorus cannot read. ` +
        "Set it for the role, and start again: alter role ... set datestyle = 'ISO'",
    );
  }
  if (row?.nulls === "off") {
    throw new Error(
      "The database has array_nulls = off, with which Chorus cannot send lists that have gaps. " +
        "Set it for the role, and start again: alter role ... set array_nulls = on",
    );
  }
  // Statements wait for locks, and then read what others have written. Otherwise they fail.
  if (row && !["read committed", "read uncommitted"].includes(row.isolation)) {
    throw new Error(
      `The database has default_transaction_isolation "${row.isolation}", with which most requests of several ` +
        "replicas fail. Set it for the role, and start again: " +
        "alter role ... set default_transaction_isolation = 'read committed'",
    );
  }
}

/** Codes of a certificate whose authority is not known, as OpenSSL names them. */
const UNKNOWN_AUTHORITY =
  /^(DEPTH_ZERO_SELF_SIGNED_CERT|SELF_SIGNED_CERT_IN_CHAIN|UNABLE_TO_(GET_ISSUER|VERIFY_LEAF)_\w+)$/;

function refusal(error: Error & { code?: string }): string {
  if (!UNKNOWN_AUTHORITY.test(error.code ?? "")) {
    return `The database refuses this service: ${error.message}. Correct DATABASE_URL.`;
  }
  return (
    "The certificate of the database is not from an authority that this machine trusts. Name the file of the " +
    "authority in DATABASE_URL: sslrootcert=/path/to/ca.pem."
  );
}
