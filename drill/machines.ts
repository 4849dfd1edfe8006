import { appendFile, chmod, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { parseEnv } from "node:util";
import { openPool, type Pool } from "../src/store/pool.ts";
import {
  findPrograms,
  hand,
  listens,
  type Programs,
  type Running,
  runProgram,
  startProgram,
  succeeds,
  tellHaproxy,
} from "./processes.ts";

/** The configuration files of the guide. */
const FILES = resolve(import.meta.dirname, "../docs/operating/machines");

/** The machines of the guide, each with a loopback address in place of its own. */
export interface Machines extends AsyncDisposable {
  /** Address of HAProxy for callers. */
  readonly url: string;
  /** Environment of replica 1, 2 or 3. */
  replicaEnv(number: number): Record<string, string>;
  /** Statements to the primary, past PgBouncer. */
  readonly pool: Pool;
  /** Ends db1 and all of its processes at once. */
  losePrimary(): Promise<void>;
  /** Makes db2 the primary, as the guide says. */
  promoteStandby(): Promise<void>;
}

/** Starts Postgres with a synchronous standby, HAProxy and PgBouncer in a temporary folder. */
export async function startMachines(): Promise<Machines> {
  const programs = findPrograms();
  await using stack = new AsyncDisposableStack();
  const folder = await mkdtemp(join(tmpdir(), "chorus-drill-"));
  stack.defer(() => rm(folder, { recursive: true, force: true }));
  await chmod(folder, 0o755);
  await hand(folder);
  // Each machine has its own address of the loopback network, so the ports of the guide stay as they are.
  const network = `127.77.${process.pid % 250}.`;
  const text = async (name: string): Promise<string> =>
    (await readFile(join(FILES, name), "utf8"))
      .replaceAll("10.0.0.", network)
      .replace(/\/(run\/haproxy|etc\/pgbouncer)\//g, `${folder}/`);
  const place = async (name: string, path = join(folder, name)): Promise<string> => {
    await writeFile(path, await text(name));
    await hand(path);
    return path;
  };

  const [db1, db2] = await startDatabases({ programs, folder, network, place, stack });
  const socket = join(folder, "admin.sock");
  const haproxy = await place("haproxy.cfg");
  stack.use(startProgram(programs.haproxy, ["-db", "-f", haproxy], "SIGTERM"));
  await listens(`${network}10`, 5432);
  await place("userlist.txt");
  stack.use(startProgram(programs.pgbouncer, [await place("pgbouncer.ini")], "SIGTERM"));
  await listens(`${network}10`, 6432);
  const replica = parseEnv(await text("chorus.env")) as Record<string, string>;
  const pool = stack.adopt(openPool(replica.DATABASE_LISTEN_URL ?? "", { max: 4 }), (opened) => opened.end());
  const running = stack.move();
  return {
    url: `http://${network}10:8080`,
    pool,
    replicaEnv: (number) => ({ ...replica, HOST: `${network}1${number}`, RPC_HOST: `${network}1${number}` }),
    losePrimary: () => db1.kill(),
    async promoteStandby() {
      await tellHaproxy(socket, "disable server postgres/db1");
      db2.promote();
      await tellHaproxy(socket, "enable server postgres/db2");
    },
    [Symbol.asyncDispose]: () => running.disposeAsync(),
  };
}

interface DatabaseOptions {
  programs: Programs;
  folder: string;
  network: string;
  place(name: string, path?: string): Promise<string>;
  stack: AsyncDisposableStack;
}

/** Starts the primary db1, and db2 as its synchronous standby. */
async function startDatabases(options: DatabaseOptions): Promise<[Running, { promote(): void }]> {
  const { programs, folder, network, place, stack } = options;
  const [one, two] = [join(folder, "db1"), join(folder, "db2")];
  for (const path of [one, two, `${one}-socket`, `${two}-socket`]) {
    await mkdir(path, { mode: 0o700 });
    await hand(path);
  }
  const start = async (data: string, host: string): Promise<Running> => {
    const server = startProgram(programs.postgres("postgres"), ["-D", data, "-k", `${data}-socket`], "SIGINT");
    stack.use(server);
    await succeeds(() => runProgram(programs.postgres("pg_isready"), ["-h", host]));
    return server;
  };
  const psql = (data: string, ...args: string[]) => {
    // A primary that still waits for its first standby would not commit.
    const env = { PGOPTIONS: "-c synchronous_commit=local" };
    runProgram(
      programs.postgres("psql"),
      ["-h", `${data}-socket`, "-U", "postgres", "-q", "-v", "ON_ERROR_STOP=1", ...args],
      env,
    );
  };

  const auth = ["--auth-local=trust", "--auth-host=scram-sha-256"];
  runProgram(programs.postgres("initdb"), ["-D", one, "-U", "postgres", ...auth]);
  await place("db1.conf", join(one, "chorus.conf"));
  await appendFile(join(one, "postgresql.conf"), "include 'chorus.conf'\n");
  await appendFile(join(one, "pg_hba.conf"), await readFile(await place("pg_hba.conf"), "utf8"));
  const db1 = await start(one, `${network}21`);
  psql(one, "-f", await place("roles.sql"));
  const source = `host=${network}21 user=replicator password=replicator-password application_name=db2`;
  runProgram(programs.postgres("pg_basebackup"), ["-D", two, "-c", "fast", "-R", "-C", "-S", "db2", "-d", source]);
  await place("db2.conf", join(two, "chorus.conf"));
  await start(two, `${network}22`);
  return [db1, { promote: () => psql(two, "-c", "select pg_promote()") }];
}
